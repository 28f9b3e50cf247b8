package profile

// all lists this package's profiles, the default first.
func all() []*Profile {
	return []*Profile{Draft07(), StripeV1(), GoCardless()}
}

// ByName returns this package's profile of that name.
func ByName(name string) (*Profile, bool) {
	for _, p := range all() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// Names lists the names that ByName knows, the default first.
func Names() []string {
	var names []string
	for _, p := range all() {
		names = append(names, p.Name)
	}
	return names
}
