"""Nova asks Ringfence before it starts a server on a host, and before it starts one elsewhere."""
