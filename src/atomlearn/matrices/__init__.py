"""Problems over matrices: norms, designs, and the solver, which keeps W as a product of factors.

They serve matrix pursuit, sparse principal components, sparse plus low rank, and several targets.
"""
