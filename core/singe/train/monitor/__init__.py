"""What people see of a training: on the terminal, in the files of its folder, and in reports."""
