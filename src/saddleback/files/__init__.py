"""Files: what strangers wrote is read with limits, what we write is there whole or not at all."""
