package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/reconcile"
)

const ownCharge = `{"id":"ch_2","object":"charge","amount":100,"metadata":{"order":"o1"}}`

// Nothing that says of itself that it failed settles a held operation, however it says so, and the error tells nothing that the
// object says of the customer. What did not fail does, also if it is not done yet.
func TestNeighbourDeclinedObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, members string
		settles       bool
	}{
		"a declined charge":                    {"/v1/charges", `"status":"failed","paid":false,"captured":false,"failure_code":"card_declined","failure_message":"Name of Secret"`, false},
		"a blocked charge":                     {"/v1/charges", `"status":"failed","outcome":{"type":"blocked"}`, false},
		"a failed refund":                      {"/v1/refunds", `"status":"failed","failure_reason":"expired_or_canceled_card"`, false},
		"a refund's reason alone":              {"/v1/refunds", `"failure_reason":"unknown"`, false},
		"a failed payout":                      {"/v1/payouts", `"status":"failed","failure_code":"account_closed"`, false},
		"a top-up":                             {"/v1/topups", `"status":"failed","failure_code":"debit_not_authorized","failure_message":null`, false},
		"a message without a code":             {"/v1/charges", `"paid":false,"failure_code":null,"failure_message":"Name of Secret"`, false},
		"an intent to pay":                     {"/v1/payment_intents", `"status":"requires_payment_method","last_payment_error":{"code":"card_declined","message":"Name of Secret"}`, false},
		"an intent, without details":           {"/v1/payment_intents", `"status":"requires_payment_method","last_payment_error":{}`, false},
		"an intent to save a card":             {"/v1/setup_intents", `"status":"requires_payment_method","last_setup_error":{"decline_code":"do_not_honor"}`, false},
		"a failed code, the status says fine":  {"/v1/payouts", `"status":"paid","failure_code":"account_closed"`, false},
		"a charge that succeeded":              {"/v1/charges", `"status":"succeeded","paid":true,"failure_code":null,"failure_message":null,"failure_balance_transaction":null`, true},
		"a charge that was refunded since":     {"/v1/charges", `"status":"succeeded","refunded":true,"amount_refunded":100`, true},
		"a charge that is authorized":          {"/v1/charges", `"status":"succeeded","captured":false`, true},
		"an intent that was not confirmed":     {"/v1/payment_intents", `"status":"requires_confirmation","last_payment_error":null`, true},
		"an intent that waits for the bank":    {"/v1/payment_intents", `"status":"processing"`, true},
		"an intent that waits for the person":  {"/v1/payment_intents", `"status":"requires_action"`, true},
		"a payout on its way":                  {"/v1/payouts", `"status":"in_transit","failure_code":null`, true},
		"an object that has no status":         {"/v1/transfers", `"reversed":false`, true},
		"another object's failure inside":      {"/v1/refunds", `"status":"succeeded","charge":{"status":"failed"}`, true},
		"a status of the caller's own":         {"/v1/charges", `"status":"succeeded","description":"failed","metadata_of":{"status":"failed"}`, true},
		"a failed charge, its status is first": {"/v1/charges", `"failure_code":"","status":"failed"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := with(ownCharge, c.members)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s],"has_more":false}`, object)
			})
			res, err := authorized().Stripe("/metadata/order", "/amount")(t.Context(), s.held(c.path, "amount=100&metadata[order]=o1"))
			if c.settles {
				want(t, name, res, err, object)
			} else if err == nil || res.Effect != "" || res.Answer != nil || strings.Contains(err.Error(), "Secret") {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// Where the order was tried twice, one try being declined, nobody knows which of the two the key made.
func TestNeighbourDeclinedBesideAnother(t *testing.T) {
	t.Parallel()
	declined := with(strings.Replace(ownCharge, "ch_2", "ch_1", 1), `"status":"failed"`)
	paid := with(ownCharge, `"status":"succeeded"`)
	foreign := strings.Replace(declined, "o1", "o2", 1)
	other := strings.Replace(declined, "100", "900", 1)
	for name, c := range map[string]struct {
		pages []string
		want  string
		fails bool
	}{
		"declined, then paid":            {pages: []string{declined + "," + paid}},
		"paid, then declined":            {pages: []string{paid + "," + declined}},
		"declined, on the next page":     {pages: []string{paid, declined}},
		"paid, on the next page":         {pages: []string{declined, paid}},
		"declined twice":                 {pages: []string{declined + "," + strings.Replace(declined, "ch_1", "ch_3", 1)}},
		"another order's was declined":   {pages: []string{foreign, paid}, want: paid},
		"declined on the second page":    {pages: []string{foreign, declined}, fails: true},
		"with an amount of another try":  {pages: []string{other}},
		"of another amount, beside ours": {pages: []string{other, paid}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				at := 0
				if r.URL.Query().Get("starting_after") != "" {
					at = 1
				}
				_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s],"has_more":%t}`, c.pages[at], at+1 < len(c.pages))
			})
			res, err := authorized().Stripe("/metadata/order", "/amount")(t.Context(), s.held("/v1/charges", "amount=100&metadata[order]=o1"))
			if c.fails || (c.want == "" && err != nil) {
				if err == nil || res.Effect != "" || res.Answer != nil {
					t.Errorf("%+v, %v", res, err)
				}
				return
			}
			want(t, name, res, err, c.want)
		})
	}
}

// noSettle is a journal whose writes fail while it is set.
type noSettle struct {
	persist.Journal
	persist.Attachment
	failing atomic.Bool
}

var errDisk = errors.New("no space")

func (j *noSettle) Attach(create func() any) any { return j.Attachment.Attach(create) }

func (j *noSettle) Finish(ctx context.Context, rec persist.Record) error {
	if j.failing.Load() {
		return errDisk
	}
	return j.Journal.Finish(ctx, rec)
}

// Through the client: a charge that was declined while its answer was lost is never told as paid, by whatever call. The way on is
// a person's word. One that went through is, also where the journal failed the first time.
func TestNeighbourDeclinedThroughTheClient(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"memory", "bolt"} {
		for _, status := range []string{"failed", "succeeded"} {
			for _, failing := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/failing %t", engine, status, failing), func(t *testing.T) {
					t.Parallel()
					j := &noSettle{Journal: memory.New()}
					if engine == "bolt" {
						file, err := bolt.Open(filepath.Join(t.TempDir(), "j.db"), bolt.Options{})
						if err != nil {
							t.Fatal(err)
						}
						j.Journal = file
					}
					throughTheClient(t, j, status, failing)
				})
			}
		}
	}
}

func throughTheClient(t *testing.T, j *noSettle, status string, failing bool) {
	var posts atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s],"has_more":false}`, with(ownCharge, `"status":"`+status+`"`))
			return
		}
		posts.Add(1)
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Profile: profile.StripeV1(), Reconcile: reconcile.Asker{}.Stripe("/metadata/order", "/amount")})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	defer client.Close()
	charge := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/charges", strings.NewReader("amount=100&metadata[order]=o1"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", formType)
		resp, err := client.DoKey(req, "order:o1")
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	if _, err := charge(); !errors.Is(err, oncehttp.ErrHeld) {
		t.Fatal(err)
	}
	j.failing.Store(failing)
	for pass := range 2 {
		for res, err := range client.Resume(t.Context()) {
			if told := res.Outcome == oncehttp.OutcomeConfirmed && err == nil; told != (status == "succeeded" && (!failing || pass > 0)) {
				t.Errorf("pass %d: %+v, %v", pass, res, err)
			}
		}
		j.failing.Store(false)
	}
	body, err := charge()
	if status == "succeeded" {
		if err != nil || !strings.Contains(body, "ch_2") {
			t.Errorf("%s, %v", body, err)
		}
	} else if !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || body != "" {
		t.Errorf("%s, %v", body, err)
	}
	if posts.Load() != 1 {
		t.Errorf("%d charges were posted", posts.Load())
	}
}
