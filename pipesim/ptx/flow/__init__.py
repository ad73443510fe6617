"""Control flow of a PTX function, and the instructions on which its synchronisation depends."""
