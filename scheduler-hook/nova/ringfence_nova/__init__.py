"""Nova asks Ringfence before it starts anything on a host, and before it starts it elsewhere."""
