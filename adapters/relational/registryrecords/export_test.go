package registryrecords

// FarRows is how many rows a page reads at most in its order.
const FarRows = farRows

// AlwaysUseIndexes makes searches of small registries use the index that searches of large ones
// use.
func (s *Servers) AlwaysUseIndexes() { s.near = 0 }

// FewRows is how many rows of another index a page reads at most.
const FewRows = fewRows
