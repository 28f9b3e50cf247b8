package conformancetest

// WithOptions names options in place of flags.
func WithOptions(text string) string { return withOptions(text) }
