package settings

// PeerNames returns the names of variables of the Envoy rate limit service that the settings know.
func PeerNames() []string {
	var names []string
	for _, n := range peerNames {
		names = append(names, n.theirs)
	}
	for name := range unusedPeerNames {
		names = append(names, name)
	}
	return names
}
