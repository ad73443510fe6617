"""A protocol at many parameters: which configurations are valid and proved, how long each takes, which are the best."""
