"""DataCollection: blocks of samples, who draws them, where they are kept, and the buffers that average them."""
