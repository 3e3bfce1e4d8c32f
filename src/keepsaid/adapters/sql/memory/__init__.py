"""What the memory store writes and reads, whatever database holds it; how it is searched is the database's own."""
