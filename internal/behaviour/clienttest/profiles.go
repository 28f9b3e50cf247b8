package clienttest

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// Named returns the built-in profile of that name, and fails the test if there is none.
func Named(t *testing.T, name string) *profile.Profile {
	t.Helper()
	p, ok := profile.ByName(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p
}

// OwnProfile returns the default profile under another name, so that it counts as that of one known API, and not as the default for an unknown one.
func OwnProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name = "own"
	return p
}

// OwnWindow returns the default profile under another name, with this window: the time after the first send in which a repeat is safe.
func OwnWindow(d time.Duration) *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Window.Floor = "x", d
	return p
}

// TokenProfile returns the profile of an API that hands out the keys itself, as tokens. They come from the client's Config.Token, since the profile does not say how
// to ask for one.
func TokenProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Token = "with-token", &profile.Token{}
	return p
}
