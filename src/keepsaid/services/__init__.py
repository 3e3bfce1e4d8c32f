"""The services: every use case once, typed values in and out; commands, HTTP and the library are thin faces of them."""
