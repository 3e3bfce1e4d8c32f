"""What a user tests with: a scripted model behind real HTTP, no provider needed."""
