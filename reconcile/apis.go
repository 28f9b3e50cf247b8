package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	pagesMax   = 100             // of a list, so 10,000 objects
	clocksDiff = 5 * time.Minute // the greatest difference between this machine's clock and the API's
)

// list is a page of a list of Stripe or Increase.
type list struct {
	Data    []json.RawMessage `json:"data"`
	HasMore bool              `json:"has_more"` // Stripe's only
}

// Stripe returns a Func for Stripe's v1 API, to find out what became of a held operation. It reads the list of objects created since the operation was first
// sent (created[gte], on the operation's own path), and takes the only object with the request's own value at the JSON pointer unique, such as
// "/metadata/order". The value must identify the order, or better this attempt at it: two objects with it leave the operation held, as no object does (the
// zero Resolution). The values at same, such as "/amount" and "/currency", must be equal, too.
//
// An object with signs of a failure, such as a declined charge, is an error, and so is a list of more than 10,000 objects; the operation stays held. Stripe's
// search is not used: by its documentation it is not for reading right after writing (https://docs.stripe.com/search).
func (a Asker) Stripe(unique string, same ...string) Func {
	ref := &profile.Reference{Same: []profile.Same{{Request: unique, Resource: unique}}}
	for _, pointer := range same {
		ref.Same = append(ref.Same, profile.Same{Request: pointer, Resource: pointer})
	}
	return func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
		want, err := request.FieldsOf(rec.Header, rec.Body).Text(unique)
		if err != nil {
			return oncehttp.Resolution{}, fmt.Errorf("reconcile: %s in the request: %w", unique, err)
		}
		found, err := a.listed(ctx, &rec, func(object json.RawMessage) bool {
			text, found := jsonpointer.Text(jsonpointer.Decode(object), unique)
			return found && text == want
		})
		if err != nil || len(found) != 1 {
			return oncehttp.Resolution{}, err
		}
		if sign := failure(found[0]); sign != "" {
			return oncehttp.Resolution{}, fmt.Errorf("reconcile: Stripe's object says that it failed (%s), so that a success is no answer to its request; settle it by hand", sign)
		}
		return judge(&rec, &profile.Profile{Reference: ref}, found[0], "found in Stripe's list")
	}
}

// failure returns the pointer to the sign of a failure in one of Stripe's objects; empty: there is none. The list contains
// declined charges, and payment intents with a declined confirmation, with 402 as the answer to their request. Other objects
// fail days after a 200. The object does not show which of the two it was, so no answer can be derived from it.
func failure(object json.RawMessage) string {
	document := jsonpointer.Decode(object)
	if status, _ := jsonpointer.Text(document, "/status"); status == "failed" {
		return "/status"
	}
	for _, pointer := range []string{"/failure_code", "/failure_message", "/failure_reason", "/failure_details", "/last_payment_error", "/last_setup_error"} {
		if jsonpointer.Value(document, pointer) != nil {
			return pointer
		}
	}
	return ""
}

// listed returns the objects of the list selected by wanted, created since clocksDiff before the operation was first sent, as the clocks of the two sides may
// differ. After an error the result is nil: a part of the list proves nothing.
func (a *Asker) listed(ctx context.Context, rec *persist.Record, wanted func(json.RawMessage) bool) (found []json.RawMessage, err error) {
	since := rec.FirstSent
	if since.IsZero() { // no send is recorded
		since = rec.Created
	}
	query := url.Values{"limit": {"100"}, "created[gte]": {strconv.FormatInt(since.Add(-clocksDiff).Unix(), 10)}}
	for range pagesMax {
		page, err := a.page(ctx, rec, query)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Data {
			if wanted(object) {
				found = append(found, object)
			}
		}
		if !page.HasMore {
			return found, nil
		}
		last, _ := jsonpointer.Text(jsonpointer.Decode(page.Data[len(page.Data)-1]), "/id")
		if last == "" || last == query.Get("starting_after") {
			return nil, errors.New("reconcile: a page of the list does not say where it ends")
		}
		query.Set("starting_after", last)
	}
	return nil, fmt.Errorf("reconcile: the list has more than %d pages", pagesMax)
}

// page reads one page of the list at the path of the operation's request. A page that has no entries although more follow is an error.
func (a *Asker) page(ctx context.Context, rec *persist.Record, query url.Values) (page list, err error) {
	got, err := a.get(ctx, rec, request.Path(rec.Target)+"?"+query.Encode())
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(got, &page); err != nil || page.Data == nil || page.HasMore && len(page.Data) == 0 {
		return page, errors.New("reconcile: the answer is no list")
	}
	return page, nil
}

// Increase returns a Func for Increase, to find out what became of a held operation. It asks by the key itself: each list has a filter idempotency_key, and
// one key makes at most one object in all of Increase (https://increase.com/documentation/idempotency-keys). The values at same, such as "/amount", must be
// equal in request and object, since the key may have been used for another request. An operation held as a mismatch stays held: the API has said that the key
// belongs to another request.
func (a Asker) Increase(same ...string) Func {
	ref := &profile.Reference{}
	for _, pointer := range same {
		ref.Same = append(ref.Same, profile.Same{Request: pointer, Resource: pointer})
	}
	return func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
		if rec.HoldReason == persist.HoldMismatch {
			return oncehttp.Resolution{}, nil
		}
		page, err := a.page(ctx, &rec, url.Values{"idempotency_key": {rec.WireKey}})
		if err != nil || len(page.Data) != 1 {
			return oncehttp.Resolution{}, err
		}
		if key, _ := jsonpointer.Text(jsonpointer.Decode(page.Data[0]), "/idempotency_key"); key != rec.WireKey {
			return oncehttp.Resolution{}, errors.New("reconcile: what was found does not have the key; the filter was not heeded")
		}
		return judge(&rec, &profile.Profile{Reference: ref}, page.Data[0], "found by its key")
	}
}

// GoCardless returns a Func for GoCardless, to find out what became of a held operation. It fetches the resource created under the key, named by the last
// answer: links.conflicting_resource_id of a 409 with reason idempotent_creation_conflict (github.com/gocardless/gocardless-nodejs). The profile's first
// matcher of already_done is this reason. With any other last answer the operation stays held: GoCardless has no lookup by key.
func (a Asker) GoCardless() Func {
	p := profile.GoCardless()
	return func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
		last := rec.Answer
		if last == nil || last.Status != http.StatusConflict || last.BodyDropped {
			return oncehttp.Resolution{}, nil
		}
		text, err := textOf(last.Header, last.Body)
		if err != nil {
			return oncehttp.Resolution{}, err
		}
		if reason, _ := jsonpointer.Text(jsonpointer.Decode(text), p.AlreadyDone[0].Pointer); reason != p.AlreadyDone[0].Equals[0] {
			return oncehttp.Resolution{}, nil
		}
		get, target := request.Lookup(&rec, p, text, true) // true: the text is complete
		if target == nil {
			return oncehttp.Resolution{}, nil
		}
		found, err := a.send(ctx, &get, target)
		switch {
		case err != nil:
			return oncehttp.Resolution{}, err
		case jsonpointer.Decode(found) == nil:
			return oncehttp.Resolution{}, errors.New("reconcile: the resource that the key made is no JSON")
		// Held as a duplicate: whose request used the key before is not known. The resource must have each value of this one.
		case rec.HoldReason == persist.HoldDuplicate && !classify.Repeats(rec.Body, found):
			return oncehttp.Resolution{}, errors.New("reconcile: another request has used the key: the resource that it made has other values; settle it by hand")
		}
		return happened(found, "the resource that the key made"), nil
	}
}
