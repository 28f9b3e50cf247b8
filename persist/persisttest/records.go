package persisttest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// epoch returns the creation time of the suite's records. It has nanoseconds;
// a journal must not lose them. It lies in the past, so nothing depends on today.
func epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC) }

// record returns a valid pending record of an account and a key, with few fields set.
func record(account, key string) persist.Record {
	body := []byte(fmt.Sprintf(`{"for":%q}`, key))
	sum := sha256.Sum256([]byte(account + "\x00" + key))
	return persist.Record{
		ID: persist.ID{Account: account, Key: key}, Origin: "https://api.example:443", Method: "POST", Target: "/v1/things",
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
		Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: key, Profile: "draft-07", ProfileVersion: "7",
		Window: 24 * time.Hour, Fingerprint: sum[:], Recipe: "1 content-type", Created: epoch(),
	}
}

// numbered returns n plain records in one account.
func numbered(account string, n int) []persist.Record {
	all := make([]persist.Record, n)
	for i := range all {
		all[i] = record(account, fmt.Sprintf("idemp:order:%d", i))
	}
	return all
}

// fullest returns a held record in which every field that an unfinished one may have is set, partly to values at which a journal may stumble: binary bytes,
// empty texts.
func fullest(account, key string) persist.Record {
	r := record(account, key)
	r.Generated, r.PlainHTTP = true, true
	r.Target = "/v1/things?a=1&b=%20"
	r.Header = http.Header{"Content-Type": {"text/plain"}, "X-Many": {"a", "", "b"}, "X-Bytes": {"\xff\x00"}}
	r.Body = []byte("\x00\xff binary \n")
	r.Omitted = []string{"Authorization", "userinfo"}
	r.KeptFields = []persist.KeptField{{Pointer: "/amount", Value: "1.50"}, {Pointer: "/a~1b/0", Value: "ä\n\""}, {Pointer: "/empty"}, {Pointer: "/long", Omitted: true}}
	r.WireKey = `"` + key + `"`
	r.KeepAnswer, r.KeepKey, r.KeepText = 90*24*time.Hour+1, 400*24*time.Hour+1, 300*24*time.Hour+1
	r.Credentials = []persist.Credential{{Name: "Authorization", Digest: strings.Repeat("ab", 32)}, {Name: "?api_key", Digest: "\xff\x00"}}
	r.Business, r.AskFirst, r.Facts, r.Content = true, true, "facts", "content \xff\x00"
	r.Trace = "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("cd", 8) + "-01;vendor=a\"\xff"
	r.Scopes = []persist.Scope{{Name: "Stripe-Account", Value: "acct_1"}, {Name: "X-Tenant"}}
	r.RedriveRun, r.DropAnswer = "run 1", []string{"/client_secret", "/card/number", "/ä\xff"}
	r.Replaces, r.Credential, r.Region = "the key before", "sha256:"+strings.Repeat("0f", 32), "eu-west"
	return changed(r)
}

// changed returns the record with every field set that an Update may change.
func changed(r persist.Record) persist.Record {
	r.State, r.HoldReason = persist.StateHeld, persist.HoldStoredError
	r.MaybeSent, r.FirstSent, r.SendUntil = true, epoch().Add(time.Second), epoch().Add(31*time.Second)
	r.NextAttempt, r.SendBefore = epoch().Add(time.Minute), epoch().Add(time.Hour)
	r.Attempts, r.Sends, r.Drives, r.Enqueued = 3, 4, 5, true
	r.Unreported = false
	r.LeaseOwner, r.LeaseUntil = "worker 7", epoch().Add(2*time.Minute)
	r.Note = "asked the bank"
	r.Acts = []persist.Act{{At: epoch().Add(time.Minute), Did: persist.ActAbsent, Note: "not there"}, {At: epoch().Add(time.Hour), Did: persist.ActReopened}}
	r.History = []persist.Attempt{{At: epoch().Add(time.Second), Took: 30 * time.Second, Sent: true, Error: "no answer"}, {At: epoch().Add(time.Minute), Status: 500, Sent: true}}
	r.Evidence = &persist.Evidence{Event: "evt_1", Type: "payment.\xff", By: "/reference", Scheme: "stripe", Digest: strings.Repeat("\x01\xff", 16), At: epoch().Add(4*time.Second + 1)}
	r.Answer = &persist.Answer{Status: 500, Header: http.Header{"Idempotent-Replayed": {"true"}}, Body: []byte("oops"),
		Replayed: true, Stored: true, At: epoch().Add(3 * time.Second)}
	return r
}

// finished returns the record as confirmed by a 201, ready for Finish.
func finished(r persist.Record) persist.Record {
	r.State, r.HoldReason = persist.StateConfirmed, ""
	r.MaybeSent, r.FirstSent = true, epoch().Add(time.Second)
	r.ExtendSendUntil(epoch().Add(31 * time.Second))
	r.Attempts++
	r.Sends++
	r.Finished = epoch().Add(5 * time.Second)
	r.Answer = &persist.Answer{Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/v1/things/1"}},
		Body: []byte(`{"id":"1"}`), Dropped: []string{"/client_secret", "/card/number"}, Stored: true, At: epoch().Add(4 * time.Second)}
	return r
}
