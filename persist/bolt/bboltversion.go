package bolt

import "runtime/debug"

// bboltReviewed is the version of bbolt of which it was checked, in its source,
// that a commit never writes to a page that the commit before has in use, that it
// writes all other pages before the meta page, and where in the meta page it
// leaves bytes free. go.mod requires this version, but the newest version that any
// module of a program requires is the one that is built in.
const bboltReviewed = "v1.5.0"

// usesReviewedBbolt reports whether this program is built with that version. It
// gives false where the program does not say, as test binaries do.
func usesReviewedBbolt(forced string) bool {
	if forced != "" {
		return forced == bboltReviewed
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, m := range info.Deps {
		if m.Path == "go.etcd.io/bbolt" {
			return m.Replace == nil && m.Version == bboltReviewed
		}
	}
	return false
}
