"""What a kernel is: the scalar language, index arithmetic, Kernel and Routine, and the interpreter that defines them."""
