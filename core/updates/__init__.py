"""Updates: what a server announces, the setup that it names, and the program that was installed by one."""
