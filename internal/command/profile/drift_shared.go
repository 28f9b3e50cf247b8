package profile

import (
	"crypto/sha256"
	"reflect"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// wireShare is an operation with a key on the wire that another has, too.
type wireShare struct {
	path                 string
	content              string // digest of path and body
	kept                 []persist.KeptField
	credential, region   string // pins; an account by its name may share them
	scopes               []persist.Scope
	first, last, settled time.Time
	marked               bool
	status               int
	key, account         string
}

// wireOf returns a digest of the origin, the method and the key of a request as sent. Operations of two accounts may share it.
func wireOf(rec *persist.Record) [16]byte {
	sum := sha256.Sum256([]byte(rec.Origin + "\n" + rec.Method + "\n" + rec.KeyOnWire()))
	return [16]byte(sum[:16])
}

// shared returns the digests of keys as sent that more than one operation has.
func (d *drift) shared() [][16]byte {
	var list [][16]byte
	for wire, n := range d.wires {
		if n > 1 {
			list = append(list, wire)
		}
	}
	return list
}

// sharesMax is how many operations of one key on the wire are compared.
const sharesMax = 64

// lookShared compares a success with those of other content under the same key on the wire, with the same credential (a hash of it is in the record). If the
// API took the later request as a new one, it notes that. Two operations of one journal share such a key only if they are of two accounts. At most sharesMax
// successes of one key are compared. d.wires counts the operations of each such key, and d.others has the successes that were looked at. It always returns nil:
// it is a callback.
func (d *drift) lookShared(rec *persist.Record) error {
	if rec.Swept || !rec.Protected || rec.FirstSent.IsZero() || rec.FirstSent.Before(d.since) || rec.Answer == nil || rec.FinalEffect() != persist.EffectHappened || !isSuccess(rec.Answer.Status) {
		return nil
	}
	// Flags add marks to a profile's name, behind @ or ~.
	name := strings.FieldsFunc(rec.Profile+"@", func(r rune) bool { return r == '@' || r == '~' })
	p, wire := d.profiles[name[0]], wireOf(rec)
	if p == nil || len(p.Mismatch) == 0 || d.wires[wire] < 2 || len(d.others[wire]) >= sharesMax {
		return nil
	}
	path, _, _ := strings.Cut(rec.Target, "?")
	share := wireShare{
		path: path, content: rec.Content, kept: rec.KeptFields, credential: rec.Credential, region: rec.Region, scopes: rec.Scopes, first: rec.FirstSent, last: rec.Answer.At,
		settled: rec.Finished, marked: rec.Answer.Replayed || rec.Answer.AlreadyDone || markedBy(p, rec.Answer), status: rec.Answer.Status,
		key: string(rec.Key), account: rec.ScopedAccount(),
	}
	for _, other := range d.others[wire] {
		a, b := &other, &share
		if b.first.Before(a.first) {
			a, b = b, a
		}
		if within := b.last.Sub(a.first); acceptedMismatch(p, a, b) && within < p.Window.Floor {
			d.seen = append(d.seen, sight{driftMismatch, apiAt{p.Name, rec.Origin}, b.status, b.last, within, b.key, b.account})
			break
		}
	}
	d.others[wire] = append(d.others[wire], share)
	return nil
}

// acceptedMismatch reports whether b, begun after a had succeeded, is another request of the same owner at the same path, and was
// answered as a new one. Owners are told by the credential, the region, and the scopes (headers that select an account of the API). a.settled is the end of a;
// b.marked: its answer has the mark of a replay.
func acceptedMismatch(p *profile.Profile, a, b *wireShare) bool {
	owned := a.credential != "" && a.credential == b.credential && a.region == b.region
	return owned && a.path == b.path && reflect.DeepEqual(a.scopes, b.scopes) && !b.first.Before(a.settled) && !b.marked && a.differs(p, b)
}

// differs reports whether the API takes b for another request than a. content is a digest of a request, "" if it is not known; kept has the values of its
// body that were kept. If only the bytes of the bodies differ, an API that compares values may take them for the same, unless the API marks replays and b's
// answer has no such mark.
func (a *wireShare) differs(p *profile.Profile, b *wireShare) bool {
	if a.content == "" || b.content == "" || a.content == b.content {
		return false
	}
	for _, x := range a.kept {
		for _, y := range b.kept {
			if x.Pointer == y.Pointer && !x.Omitted && !y.Omitted && x.Value != y.Value {
				return true
			}
		}
	}
	return p.Body.Compared == profile.ByBytes || marksReplays(p)
}
