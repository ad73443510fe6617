"""Times without a queue: where the order of resource use is static, each is a maximum of earlier ones plus costs."""
