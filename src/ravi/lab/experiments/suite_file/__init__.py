"""The file of a suite: its types, its reader, its checks."""
