package bolt

import "runtime/debug"

// bboltReviewed is the reviewed version of bbolt. Three things were checked in its source. A commit never
// writes to a page in use by the commit before. It writes all other pages before the meta page. It leaves
// certain bytes of the meta page free. go.mod requires this version, but a program is built with the newest
// version required by any of its modules.
const bboltReviewed = "v1.5.0"

// usesReviewedBbolt reports whether this program is built with this version. It returns false if the
// program does not say, as test binaries do.
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
