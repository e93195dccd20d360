"""Problems with a name: the zoo, problem files and tables."""
