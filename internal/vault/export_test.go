package vault

// OpenFaulty is Open of a store that dies, or whose disk fails, at a point.
func OpenFaulty(o Options, fault func(point string) error) Store {
	v := &vault{o: o, ring: newRing(o), fault: fault}
	return v
}

// MaxVault is the bound of a vault, for tests.
const MaxVault = maxVault
