"""The dialect: how kernel text becomes CUDA C++."""
