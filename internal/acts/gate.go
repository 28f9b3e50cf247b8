package acts

import (
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Has holds the means of a client to meet the needs of an operation. The zero value has none.
type Has struct {
	Credential    string // Config.Credential
	Region        string // Config.Region
	Authorize     bool   // Config.Authorize is set, or the request of the call carries its credentials itself
	Profile       bool   // it knows the record's profile, or may be told it
	OriginAllowed bool   // it sends to the operation's origin
	// OthersAuthorize is the entry by which other clients of the journal send to the origin with Authorize. Empty: they do not, or this
	// client has Authorize, too.
	OthersAuthorize string
	Unknown         string // a frozen fact of the record, unreadable here, as a sentence without a subject; empty: it reads all
	Omitted         string // the names of the credentials left out of the journal, for the sentence; it may be empty

	TellsOrigin  bool // Config.OriginAllowed is to be asked
	TellsProfile bool // Config.ProfileOf is to be asked
	Producer     bool // it sends nothing to anywhere
}

// Asking is the act behind a question to the gate. The zero value is a send, a lookup or an undo.
type Asking struct {
	Enqueues bool // a Begin for whoever sends it
	Replaces bool // a Begin of another operation in its place
	Brought  bool // an act with credentials of its own: of its call, or of Config.Reconcile
	Early    bool // a look before a claim, without the functions of the Config
}

// AskingOfPass returns the act of a pass (Resume or Run) on an operation in this state, for the check of the client's means: it sends a pending one, and asks
// Config.Reconcile about a held one. The question needs no credentials of this client: it counts as one that brings its own (Brought). (Invariant 35.)
func AskingOfPass(state persist.State) Asking { return Asking{Brought: state == persist.StateHeld} }

// For returns the means of a client for an act: its own, and those not needed by the act. Early: a look before the functions of the Config are asked; their
// answer is taken for yes then, and asked for later. An Enqueue sends nothing, and leaves the origin to the sender. Of a replaced operation nothing is sent: a
// client that only enqueues may replace it, too. (Invariants 35, 36 and 44.)
func (h Has) For(a Asking) Has {
	h.Authorize = h.Authorize || a.Brought || a.Replaces
	h.OriginAllowed = h.OriginAllowed || a.Enqueues || a.Replaces && h.Producer || a.Early && h.TellsOrigin
	h.Profile = h.Profile || a.Early && h.TellsProfile
	if a.Enqueues {
		h.OthersAuthorize = ""
	}
	return h
}

// Need names an unmet need of an operation. The zero value is none.
type Need uint8

// The needs, in the order of the checks. Needs behind a seal are unknown without its key.
const (
	Nothing Need = iota
	Newer
	SealKey
	NotSealed
	Origin
	Credential
	Region
	Authorize
	Profile
	Several
)

// Lack is one unmet need of an operation. Two of them are comparable with ==; the zero value is none.
type Lack struct {
	Need  Need
	Short string // such as "needs Authorize"
	Why   string // as a sentence, with what to do
}

// Gate returns the first need of an operation (a credential, a region, a profile ...) that a client does not meet, or the zero value if the client may act. It
// is asked before a claim, a send, a lookup, Reconcile, an undo and a Rekey. (Invariant 35.)
func Gate(n persist.Needs, origin string, has Has) Lack {
	switch {
	case n.Format != persist.Format:
		return newer("it was written by a newer version of oncehttp; act on it with that version")
	case n.Hidden != "":
		return Lack{SealKey, "sealed with the key " + quoted(n.SealKeys),
			fmt.Sprintf("it is sealed with the key %q, which this client does not have; open the journal with it (package persist/seal)", n.SealKeys)}
	case n.Plain:
		return Lack{NotSealed, "not sealed", "it is not sealed, and the journal was opened with keys; open it without them, or seal it (oncehttp journal compact --seal-key)"}
	case !has.OriginAllowed:
		return Lack{Origin, "origin " + origin, fmt.Sprintf("this client does not send to %q: it is not among Config.Origins, and Config.OriginAllowed does not allow it", origin)}
	case !n.IsRegion(has.Region):
		return Lack{Region, "begun for the region " + quoted(n.Region), fmt.Sprintf("it was begun for the region %q, and Config.Region is %q", n.Region, has.Region)}
	case !n.IsCredential(has.Credential):
		return Lack{Credential, "begun with another credential", "it was begun with another credential than Config.Credential names"}
	case n.Authorize && !has.Authorize:
		return authorize(has.Omitted)
	case has.OthersAuthorize != "" && !has.Authorize:
		return LacksCredentials(origin, has.OthersAuthorize)
	case has.Unknown != "":
		return newer(has.Unknown)
	case !has.Profile:
		return Lack{Profile, fmt.Sprintf("begun under profile %q version %q", n.Profile, n.Version),
			fmt.Sprintf("profile %q version %q, under which it was begun, is not known to this client", n.Profile, n.Version)}
	}
	return Lack{}
}

// MayGoTo reports whether a request of an operation may go to an origin: only to the recorded one, and only if the client sends there now (allowed). It is
// asked for each send, by the URL of the bytes. (Invariants 6 and 36.)
func MayGoTo(origin, recorded string, allowed bool) bool { return origin == recorded && allowed }

// LacksMore returns the lack named for many operations at once, if they lack different things.
func LacksMore() Lack {
	return Lack{Several, "more than one need", "these lack more than one thing; oncehttp journal stuck names the need of each"}
}

// newer returns the lack of a client too old for the record: a later version of this package wrote it. why is the sentence for the user.
func newer(why string) Lack { return Lack{Newer, "written by a newer version", why} }

// authorize returns the lack of a client that cannot add the credentials left out of the journal; names lists these, and may be empty.
func authorize(names string) Lack {
	if names != "" {
		names = " (" + names + ")"
	}
	return Lack{Authorize, "needs Authorize", "it has credentials that no journal keeps" + names + "; set Config.Authorize"}
}

// LacksCredentials returns the lack of Authorize for an origin, if other clients of the journal send there with credentials. entry is the
// entry of their Origins. (Invariant 44.)
func LacksCredentials(origin, entry string) Lack {
	return Lack{Authorize, "needs Authorize for " + origin, fmt.Sprintf("other clients of the journal send to %q with credentials (%s); "+
		"set Config.Authorize, and Config.Origins beside it, or say that they do no longer: oncehttp journal origins --remove '%s'", origin, entry, entry)}
}

// quoted returns s as a Go string literal.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// Err returns the lack as an error, or nil if nothing is lacking. It matches persist.ErrNewer, persist.ErrSealed or nothing else.
func (l Lack) Err() error {
	switch l.Need {
	case Nothing:
		return nil
	case Newer:
		return lackError{l, persist.ErrNewer}
	case SealKey, NotSealed:
		return lackError{l, persist.ErrSealed}
	}
	return lackError{l, nil}
}

// lackError is a Lack as an error.
type lackError struct {
	lack Lack
	kind error
}

// Error returns the lack as a sentence, with what to do about it.
func (e lackError) Error() string { return e.lack.Why }

// Unwrap returns the error that the lack matches, persist.ErrNewer or persist.ErrSealed; nil for other lacks.
func (e lackError) Unwrap() error { return e.kind }

// Bar is the reason of a client not to take an operation for a drive.
type Bar uint8

// The bars.
const (
	NoBar     Bar = iota
	LacksNeed     // the client does not meet a need of it: see Gate
	IsDamaged     // its request is not the one that was begun
	HasOwner      // another process has it
)

// MayTake returns the reason against sending an operation, before its record is marked as maybe sent. intact: its request still has the recorded fingerprint;
// leased: another process has a lease of it. An unmet need comes first: a client that cannot act on the operation says nothing else of it. (Invariants 6, 12
// and 35.)
func MayTake(lacks Need, intact, leased bool) Bar {
	switch {
	case lacks != Nothing:
		return LacksNeed
	case !intact:
		return IsDamaged
	case leased:
		return HasOwner
	}
	return NoBar
}
