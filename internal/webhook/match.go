package webhook

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The reasons for which an event proves nothing.
var (
	errType        = errors.New("its type, or a value of it, is not listed as proof")
	errEnvironment = errors.New("it is of another environment, or does not say")
	errNameless    = errors.New("it names no operation")
	errNoRecord    = errors.New("no operation of this client has the named key or reference")
	errSeveral     = errors.New("several operations have the named key or reference, or may have it")
	errElsewhere   = errors.New("the operation is at an endpoint of which it proves nothing")
	errAccount     = errors.New("it is of another account")
	errMerchant    = errors.New("it is of another merchant than the handler's (Account)")
	errTime        = errors.New("it does not say when it was created")
	errAmount      = errors.New("its amount or currency is not that of the request")
	errUnsent      = errors.New("the operation was never sent, or was sent after the event")
)

// isUnproving reports whether an error is a reason for which an event proves nothing, and not the journal's.
func isUnproving(err error) bool {
	return slices.ContainsFunc([]error{errType, errEnvironment, errNameless, errNoRecord, errSeveral, errElsewhere, errAccount, errMerchant, errTime, errAmount, errUnsent},
		func(reason error) bool { return errors.Is(err, reason) })
}

// proof returns the entry of the profile with the proof of an event of this type. It checks the environment (live or test), the merchant and the time
// of the event. The error is the reason why the event proves nothing.
func (h *Handler) proof(e *event) (*profile.EventProof, error) {
	w := h.Profile.Webhook
	kind := e.kind(w)
	at := slices.IndexFunc(w.Proofs, func(p profile.EventProof) bool {
		return p.Type == kind && !slices.ContainsFunc(p.Where, func(v profile.EventValue) bool { return !slices.Contains(v.Equals, e.text(v.Pointer)) })
	})
	if kind == "" || at < 0 {
		return nil, errType
	}
	if w.Live != "" {
		where := event{own: e.body} // it is not signed where only fields are: then it can only make an event prove nothing
		// With h.Test only events of the API's test environment count, without it only live ones.
		if live, ok := where.raw(w.Live); !ok || live == "" || (live == w.LiveValue) == h.Test {
			return nil, errEnvironment
		}
	}
	if !h.merchantAgrees(e) {
		return nil, errMerchant
	}
	if _, ok := e.created(w); !ok {
		return nil, errTime
	}
	return &w.Proofs[at], nil
}

// merchantAgrees reports whether the merchant named by the event is that of this handler. Both may be absent. The name must be signed: e.text is empty
// for a value without a signature.
func (h *Handler) merchantAgrees(e *event) bool {
	w := h.Profile.Webhook
	if w.Merchant == "" {
		return true
	}
	merchant, plain := e.raw(w.Merchant)
	return plain && merchant == e.text(w.Merchant) && merchant == h.Account
}

// find returns the one operation named by an event, by its key or by a business reference, and the kind of its name: "key", or the pointer of the
// reference in the request.
func (h *Handler) find(ctx context.Context, e *event, p *profile.EventProof) (rec persist.Record, by string, err error) {
	if key := e.text(p.Key); key != "" {
		rec, err = h.byKey(ctx, e, key)
		return rec, "key", err
	}
	references := h.References
	if p.Reference.Event != "" {
		references = append([]profile.EventField{p.Reference}, references...)
	}
	for _, r := range references {
		if text := e.text(r.Event); text != "" {
			rec, err = h.byReference(ctx, e, p, r.Request, text)
			return rec, r.Request, err
		}
	}
	return rec, "", errNameless
}

// byKey returns the one operation with this key at this API, as it was sent. An error says: there is none, there are several, or the account is
// another one.
func (h *Handler) byKey(ctx context.Context, e *event, key string) (found persist.Record, err error) {
	names := []string{key}
	switch {
	case h.Profile.Token != nil: // on the wire is a token made by the server: all records are looked through
		names = []string{""}
	case h.Profile.Encoding == profile.SFString: // on the wire it has quotes
		names = append(names, strings.Trim(key, `"`))
	}
	n, others := 0, 0
	for _, name := range slices.Compact(names) {
		for rec, err := range h.Client.Named(ctx, name) {
			named := false
			if err == nil {
				named, err = h.named(ctx, &rec, key)
			}
			switch {
			case err != nil:
				return found, err
			case !named: // another operation, maybe of another API
			case !h.accountAgrees(e, &rec):
				others++
			default:
				found = rec
				n++
			}
		}
	}
	switch {
	case n > 1:
		return found, errSeveral
	case n == 0 && others > 0:
		return found, errAccount
	case n == 0:
		return found, errNoRecord
	}
	return found, nil
}

// named reports whether a record is of an operation with this key on the wire, at this API; a request without a key there (the carrier "none") has no such
// name. An erased record has a digest of its key; one of which nothing else is left, not even its origin (persist.Unkept), may be of this API. One with a token
// of the server has no digest of it. Errors: the journal's.
func (h *Handler) named(ctx context.Context, rec *persist.Record, key string) (bool, error) {
	if rec.Carrier == "none" {
		return false, nil
	}
	if !rec.Erased {
		return rec.KeyOnWire() == key && h.ours(rec), nil
	}
	if rec.ServerToken || rec.Origin != persist.Unkept && !h.ours(rec) {
		return false, nil
	}
	digest, err := h.Client.ErasedKey(ctx, key)
	return err == nil && rec.WireKey == digest, err
}

// ours reports whether a record is of the profile and of an origin of the handler.
func (h *Handler) ours(rec *persist.Record) bool {
	return rec.Profile == h.Profile.Name && rec.ProfileVersion == h.Profile.Version && (len(h.Origins) == 0 || slices.Contains(h.Origins, rec.Origin))
}

// byReference returns the one operation with this text at the pointer of its request, in a field that was kept since Begin. It reads all records: if another one may
// have the text, too, the event proves nothing, and it returns errSeveral. Of operations that replace each other it is the last one that the event may be about, or
// the one known to have happened.
func (h *Handler) byReference(ctx context.Context, e *event, p *profile.EventProof, pointer, text string) (found persist.Record, err error) {
	var all []persist.Record
	unclear := false
	for rec, err := range h.Client.All(ctx) {
		switch {
		case err != nil && (persist.OfOneRecord(err) || errors.Is(err, persist.ErrSealed)):
			unclear = true
			continue
		case err != nil:
			return found, err
		case rec.Profile != h.Profile.Name: // of another API
			continue
		case !h.ours(&rec) || !h.Client.Has(ctx, &rec): // of another version, origin or account: it may be meant, and cannot be settled here
			if kept := keeps(&rec, pointer, text); kept == keptHere || kept == inBody {
				unclear = true
			}
			continue
		}
		switch kept := keeps(&rec, pointer, text); {
		case kept == keptHere && len(all) == referredMax:
			unclear = true
		case kept == keptHere:
			all = append(all, rec)
		case kept == inBody, kept == cannotTell && h.covers(p, &rec): // not kept since Begin: it may be meant, and proves nothing
			unclear = true
		}
	}
	created, _ := e.created(h.Profile.Webhook)
	switch at, names := acts.Named(referred(all, created), unclear); names {
	case acts.NamesOne:
		return all[at], nil
	case acts.NamesNone:
		return found, errNoRecord
	case acts.NamesUnsent:
		return found, errUnsent
	}
	return found, errSeveral
}

// keeping is the relation of a record to a reference.
type keeping uint8

const (
	another    keeping = iota // it has none, or another one
	keptHere                  // it keeps this one
	inBody                    // its request has this one, and it was not kept
	cannotTell                // its request is gone
)

// keeps tells whether the request of a record has this text at a pointer: in a field kept since Begin (keptHere), or in the body alone (inBody). another means
// another text or none there; cannotTell, that the field or the body is gone.
func keeps(rec *persist.Record, pointer, text string) keeping {
	for _, f := range rec.KeptFields {
		switch {
		case f.Pointer != pointer:
		case f.Omitted:
			return cannotTell
		case f.Value == text:
			return keptHere
		default:
			return another
		}
	}
	switch value, err := request.FieldsOf(rec.Header, rec.Body).Text(pointer); {
	case rec.Body == nil && rec.RequestGone():
		return cannotTell
	case err == nil && value == text:
		return inBody
	}
	return another
}

// covers reports whether the proof of an event is about the method and path of the record's request. BasePath, put before the API's own paths by a gateway,
// is left out.
func (h *Handler) covers(p *profile.EventProof, rec *persist.Record) bool {
	path := request.Path(rec.Target)
	if below, cut := strings.CutPrefix(path, h.BasePath); cut && strings.HasPrefix(below, "/") {
		path = below
	}
	return request.Listed(p.Operations, rec.Method, path)
}

// agrees returns an error if the event contradicts the operation named by it: another endpoint, account, amount or currency. Without the request's
// body, amount and currency of an ended operation are not compared, and of an erased record the endpoint is not known.
func (h *Handler) agrees(e *event, p *profile.EventProof, rec *persist.Record) error {
	switch {
	case !rec.Erased && !h.covers(p, rec):
		return errElsewhere
	case !h.accountAgrees(e, rec):
		return errAccount
	}
	fields := request.FieldsOf(rec.Header, rec.Body)
	if rec.State.Final() && rec.Body == nil {
		return nil // the event changes nothing
	}
	if event, own, both := pair(e, &fields, p.Amount); both && !sameAmount(event, own) {
		return errAmount
	}
	if event, own, both := pair(e, &fields, p.Currency); both && (event == "" || !strings.EqualFold(event, own)) {
		return errAmount
	}
	return nil
}

// pair returns the values of one field in the event and in the request, to be compared. both is false if one of them does not have it: then it contradicts nothing.
// A value that is no text counts as "".
func pair(e *event, own *request.Fields, f profile.EventField) (event, ours string, both bool) {
	if f.Event == "" {
		return "", "", false
	}
	ours, err := own.Text(f.Request)
	event, plain := e.raw(f.Event)
	if errors.Is(err, request.ErrNoField) || plain && event == "" {
		return "", "", false
	}
	return e.text(f.Event), ours, true // one that is no text equals nothing
}

// amountMax is how long the text of an amount may be.
const amountMax = 40

// sameAmount reports whether two texts are the same decimal number. A text with an exponent, or a very long one, is not the same as anything.
func sameAmount(a, b string) bool {
	x, okX := amount(a)
	y, okY := amount(b)
	return okX && okY && x.Cmp(y) == 0
}

// amount returns the value of a plain decimal number; ok is false for any other text.
func amount(text string) (*big.Rat, bool) {
	if text == "" || len(text) > amountMax || strings.Trim(text, "-0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// accountAgrees reports whether the account named by the event is that of the record's request. A header must be equal, or absent in both; the record may have a
// digest of it. A field of the body agrees, too, if the event or the request does not have it.
func (h *Handler) accountAgrees(e *event, rec *persist.Record) bool {
	w := h.Profile.Webhook
	if w.Account == "" {
		return true
	}
	account, plain := e.raw(w.Account)
	if e.signed != nil && account != e.text(w.Account) || !plain { // it is not signed, or no text
		return false
	}
	if w.AccountHeader != "" {
		at := slices.IndexFunc(rec.Scopes, func(s persist.Scope) bool { return strings.EqualFold(s.Name, w.AccountHeader) })
		if at < 0 {
			return account == ""
		}
		return intent.SameScope(account, rec.Scopes[at].Value)
	}
	if rec.RequestDropped && rec.FinalEffect() == persist.EffectHappened {
		return false // nobody can say, and an event changes nothing of it
	}
	own, err := request.FieldsOf(rec.Header, rec.Body).Text(w.AccountField)
	return err != nil || account == "" || own == account
}
