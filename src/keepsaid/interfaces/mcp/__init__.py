"""The MCP server: memory of one sender as tools, resources and prompts of the Model Context Protocol."""
