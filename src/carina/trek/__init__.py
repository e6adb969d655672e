"""CXRTrek's protocol: a conversation that follows a radiologist's reading through eight stages."""
