package sqltest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The neighbours of the pairs in company.go: each is a line of what once fell, on a journal that several processes have.

// companyOfKeys returns tests of two clients on one journal that find different keys in a request, or write the same key differently. In each row, one and
// other change the two Configs, statuses are the API's answers in order (0: it breaks the connection), begin and act are the two steps, want are the errors
// of act (none: success), and sends counts the requests at the API. With another key in the request (sends: 1) the second client must not send while the
// first's outcome is unknown. A key written differently (sends: 2) is sent again as the record has it.
func companyOfKeys() []companions {
	pointer := func(p string) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) { cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), p) }
	}
	quoted := ofShop(func(p *profile.Profile) { p.Encoding = profile.SFString })
	raw := ofShop(func(*profile.Profile) {})
	unknown := []error{oncehttp.ErrOutcomeUnknown}
	lost := []int{0, http.StatusCreated}
	return []companions{
		{name: "of another pointer", one: pointer("/order"), other: pointer("/id"), statuses: lost, begin: keyless(theOne), act: keyless(theOther), want: unknown, sends: 1},
		{
			name: "a key is required by the other", other: func(cfg *oncehttp.Config) { cfg.RequireKey = true }, statuses: lost,
			begin: keyless(theOne), act: keyless(theOther), want: unknown, sends: 1,
		},
		{name: "a raw key, then a quoted one", one: raw, other: quoted, statuses: lost, begin: doOne, act: doOther, sends: 2},
		{name: "a quoted key, then a raw one", one: quoted, other: raw, statuses: lost, begin: doOne, act: doOther, sends: 2},
	}
}

// companyOfReaders returns tests of two clients on one journal, one of which cannot read or compare the other's record. In each row, one and other change
// the two Configs, statuses are the API's answers in order (0: it breaks the connection), begin and act are the two steps, want are the errors of act, and
// sends counts the requests at the API. A recipe in a record says how two requests are compared. "Of a later build" is what a newer version of this module
// might write.
func companyOfReaders() []companions {
	unclear := []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrConfig}
	compared := func(cfg *oncehttp.Config) {
		ofShop(func(p *profile.Profile) { p.Fingerprint = append(p.Fingerprint, plainTenant, wordyTenant) })(cfg)
		cfg.Account = "shop" // the same owner for both: the header alone tells the tenants apart
	}
	secret := func(cfg *oncehttp.Config) { compared(cfg); cfg.SecretHeaders = []string{plainTenant} }
	kept := func(cfg *oncehttp.Config) {
		compared(cfg)
		cfg.KeepHeader = func(name string) bool { return strings.EqualFold(name, wordyTenant) }
	}
	created, lost := []int{http.StatusCreated}, []int{0, http.StatusCreated}
	later := func(change func(*persist.Record)) func(*company) error { return began(0, change) }
	return []companions{
		{name: "a carrier of a later build", statuses: created, begin: later(func(rec *persist.Record) { rec.Carrier = "trailer" }), act: doOther, want: unclear},
		{name: "a recipe of a later build", statuses: created, begin: later(func(rec *persist.Record) { rec.Recipe = "v9:" + rec.Recipe }), act: doOther, want: unclear},
		{
			name: "a refusal that is too large for the one", one: func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 4 }, statuses: []int{http.StatusPaymentRequired, http.StatusCreated},
			begin: doOne, act: doOther, want: []error{oncehttp.ErrFinal}, sends: 1,
		},
		{
			name: "a body that is too large for the other", other: func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 4 }, statuses: lost,
			begin: doOne, act: doOther, want: []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrBodyTooLarge}, sends: 1,
		},
		ofTenants("a header that is compared, and secret to the other", plainTenant, compared, secret),
		ofTenants("a header that is compared, and secret to the one", plainTenant, secret, compared),
		ofTenants("a header that the one keeps", wordyTenant, kept, compared),
		ofTenants("a header that the other keeps", wordyTenant, compared, kept),
	}
}

// Two headers that name a tenant. The second is a credential by a word of its name.
const plainTenant, wordyTenant = "X-Tenant", "X-Tenant-Token"

// ofTenants returns a test of two clients on one journal: the other one sends the request of the first under its key, for another tenant (named by header).
// It must not be told of the first one's end. one and other change the two Configs.
func ofTenants(name, header string, one, other func(*oncehttp.Config)) companions {
	as := func(c *company, client *oncehttp.Client, tenant string) error {
		req := c.request()
		req.Header.Set(header, tenant)
		resp, err := client.DoKey(req, "k")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	return companions{
		name: name, one: one, other: other, statuses: []int{http.StatusCreated}, sends: 1, want: []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrConfig},
		begin: func(c *company) error { return as(c, c.one, "t1") },
		act: func(c *company) error {
			err := as(c, c.other, "t2")
			if err == nil {
				err = errors.New("it got the answer of another request")
			}
			return err
		},
	}
}

// companyOfActs returns tests of two clients on one journal about their lookups at the API (Reconcile, AskFirst) before an operation is held or ended, and
// about its end. In each row, one and other change the two Configs, statuses are the API's answers in order, begin and act are the two steps, want are the
// errors of act (none: success), sends counts the requests at the API, hold is the reason of a hold at the end, and slowly lets the first answer wait until its
// client has left.
func companyOfActs() []companions {
	held := []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrHeld}
	created := []int{http.StatusCreated}
	region := func(name string) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) { cfg.Region = name }
	}
	numbered := func(cfg *oncehttp.Config) {
		found(cfg)
		cfg.Profile.Duplicate = []profile.Matcher{{Status: []int{http.StatusConflict}}}
	}
	return []companions{
		{
			name: "Reconcile of another region", one: region("eu"), statuses: created, hold: persist.HoldExpired,
			other: func(cfg *oncehttp.Config) {
				region("us")(cfg)
				cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
					return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil // its region has no such payment
				}
			},
			begin: began(26*time.Hour, func(rec *persist.Record) { rec.State, rec.HoldReason = persist.StateHeld, persist.HoldExpired }),
			act:   func(c *company) error { return resumed(c.Context(), c.other) }, want: []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrConfig},
		},
		{
			name: "asked first, as the record says", one: func(cfg *oncehttp.Config) { numbered(cfg); cfg.Retry.AskFirst = true }, other: numbered, statuses: []int{http.StatusOK},
			begin: began(26*time.Hour, nil), act: func(c *company) error { return resumed(c.Context(), c.other) }, want: held, sends: 1, hold: persist.HoldExpired,
		},
		{
			name: "the other has no time for an answer", other: func(cfg *oncehttp.Config) {
				cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 100*time.Millisecond, 100*time.Millisecond
			},
			statuses: created, slowly: true, begin: enqueueOne, sends: 2, act: func(c *company) error {
				if err := resumed(c.Context(), c.other); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) {
					c.Errorf("the other: %v, want it left pending", err)
				}
				return doOne(c)
			},
		},
		{
			name: "an answer that one of another account would drop", one: keeping(24*time.Hour, 0), statuses: created, begin: endedAgo(2 * time.Hour), act: sweptByOther,
			other: func(cfg *oncehttp.Config) { keeping(-1, 0)(cfg); cfg.Account = "another" },
		},
	}
}
