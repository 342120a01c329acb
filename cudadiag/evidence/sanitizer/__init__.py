"""Readers of compute-sanitizer's reports: XML and text of all four tools, pure and total."""
