"""What remains: episodes are recorded, recalled, and injected into turns."""
