package bolt

import "runtime/debug"

// bboltReviewed is the reviewed version of bbolt. Three things were checked in its source. A commit never
// writes to a page in use by the commit before. It writes all other pages before the meta page. It leaves
// certain bytes of the meta page free. go.mod requires this version, but a program is built with the newest
// version required by any of its modules.
const bboltReviewed = "v1.5.0"

// usesReviewedBbolt reports whether the program is built with the version of bbolt whose commits were reviewed for this package: only there may the journal
// sync once for a commit. forced, if not empty, is taken for the version of the program, in tests. A replaced module is another one, whatever its version. It
// returns false if the program does not say its versions, as test binaries do not.
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
