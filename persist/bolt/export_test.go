package bolt

// WithHashMask makes the hashes of the journal's indexes collide.
func WithHashMask(opts Options, mask uint64) Options {
	opts.hashMask = mask
	return opts
}
