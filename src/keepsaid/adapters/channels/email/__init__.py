"""E-mail as a channel: mail is read from one IMAP folder, and answered by SMTP (spec: channels, section 8)."""
