package conformance

// Defaults returns the options that stand in for zero values. The zero values of the
// other fields are their own defaults.
func Defaults() Options { return Options{}.withDefaults() }
