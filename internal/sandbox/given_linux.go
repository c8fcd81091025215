package sandbox

// Given are the paths that every command may read beside its Spec, those of the network among them (§10.2).
func Given() []string {
	var paths []string
	for _, g := range append(basePaths(), fullPaths()...) {
		paths = append(paths, g.path)
	}
	return paths
}
