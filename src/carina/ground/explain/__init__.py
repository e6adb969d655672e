"""Where does a model see what it is asked for? Maps of its own methods, of others', and of controls."""
