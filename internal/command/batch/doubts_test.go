package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchNamesDoubts: a success whose answer has words against it stays done, and the summary names the words and the flag for them. So does a rerun,
// which sends nothing, of the answers that are still there.
func TestBatchNamesDoubts(t *testing.T) {
	t.Parallel()
	answers := map[string][3]string{ // a content type, an answer, and what is said of it
		"declined":   {"application/json", `{"id":1,"status":"declined"}`, "1 of the done: the answer has /status=declined; if that is no success, say so: --declined /status=declined with the same command counts these as declined, and sends none of them; --done /status=TEXT says what is one, of what is begun from then on"},
		"nested":     {"application/json", `{"data":{"payment_state":"PROCESSING"}}`, "the answer has /data/payment_state=PROCESSING, which may still succeed: ask the API"},
		"error":      {"application/json", `{"id":1,"error":{"code":"x"}}`, "the answer has /error/code=x; look whether these took effect; if not, say so: --declined /error/code=x with the same command"},
		"no error":   {"application/json", `{"id":1,"error":null,"errors":{},"last_error":"none","warnings":["x"]}`, ""},
		"mutation":   {"application/json", `{"data":{"pay":{"userErrors":[{"message":"no"}]}}}`, "the answer has /data/pay/userErrors/0/message=no; look whether these took effect"},
		"graphql":    {"application/json", `{"errors":[{"locations":[{"line":1}],"message":"no money"}],"data":{"pay":{}}}`, "the answer has /errors/0/message=no money; look whether these took effect; if not, say so: --declined '/errors/0/message=no money' with the same command counts"},
		"false":      {"application/json", `{"success":false}`, "--declined /success=false"},
		"empty":      {"application/json", ``, "the answer has no content, although it is called application/json"},
		"nothing":    {"application/json", ` {} `, "the answer has nothing but {}; look whether these took effect"},
		"null":       {"application/json", `null`, "the answer has nothing but null"},
		"text":       {"text/plain", ` ERROR: account blocked`, `the answer has a text that begins with "error"`},
		"no text":    {"application/json", `{"errors":[{"a":{"b":{"c":{"d":"deep"}}}}]}`, "the answer has /errors; look whether these took effect; --done /POINTER=TEXT counts"},
		"soap":       {"text/xml", `<e:Envelope><e:Body><e:Fault>no</e:Fault></e:Body></e:Envelope>`, "the answer has a fault of SOAP"},
		"large":      {"application/json", `{"pad":"` + strings.Repeat("x", 2<<20) + `","status":"declined"}`, "the answer has a body that is not kept whole, and no words were looked for in it; look whether these took effect"},
		"replayed":   {"replayed", `{"id":"another's"}`, "the answer has the mark of a replay at the first send, so it may be of another request under the same key"},
		"207":        {"207", `{"items":[{"code":422}]}`, "the answer has several outcomes (207)"},
		"good text":  {"text/plain", `errorless`, ""},
		"code":       {"application/json", `{"id":1,"code":"E_LIMIT"}`, "the answer has /code=E_LIMIT; if that is no success, say so: --declined /code=E_LIMIT with the same command"},
		"a result":   {"application/json", `{"resultCode":"Refused"}`, "--declined /resultCode=Refused"},
		"a status":   {"application/json", `{"status": 400,"message":"x"}`, "--declined /status=400"},
		"no":         {"application/json", `false`, "the answer has nothing but false"},
		"good codes": {"application/json", `{"statusCode":201,"resultCode":"Authorised","status":200,"data":{"status":404,"postcode":"missing"}}`, ""},
		"number":     {"application/json", `{"code":422,"message":"x"}`, "--declined /code=422"},
		"error code": {"application/json", `{"data":{"errorCode":17}}`, "--declined /data/errorCode=17"},
		"no code":    {"application/json", `{"code":"EUR","errorCode":0,"error_code":"000","errCode":"SUCCESS"}`, ""},
		"ids":        {"application/json", `{"code":"3f-7e9-e","error_code":null,"data":{"code":404}}`, ""},
		"fine":       {"application/json", `{"code":200,"error_code":"no error"}`, ""},
		"xml":        {"text/xml", `<?xml version="1.0"?><r xmlns:a="x"><a:id>1</a:id><a:status>FAILED</a:status></r>`, "the answer has <status>FAILED</status>; look whether these took effect\n"},
		"xml code":   {"text/xml", `<r><errorCode>5</errorCode></r>`, "the answer has <errorCode>5</errorCode>; look"},
		"good xml":   {"text/xml", `<r><status>OK</status><errorCode>0</errorCode><note>not failed</note></r>`, ""},
		"good":       {"application/json", `{"id":"p1","status":"succeeded","errors":[]}`, ""},
		"other word": {"application/json", `{"note":"not pending any more","status":"paid"}`, ""},
		"in a list":  {"application/json", `[{"status":"failed"}]`, "the answer has /0/status=failed; if that is no success"},
		"found":      {"application/json", `{"data":[{"id":1,"status":"FAILED"}]}`, "the answer has /data/0/status=FAILED; if that is no success"},
		"several":    {"application/json", `{"data":[{"status":"failed"},{"status":"succeeded"}]}`, ""},
		"camel":      {"application/json", `{"paymentStatus":"REJECTED"}`, "--declined /paymentStatus=REJECTED"},
		"isSuccess":  {"application/json", `{"isSuccess":false}`, "--declined /isSuccess=false"},
		"voided":     {"application/json", `{"transaction":{"status":"voided"}}`, "--declined /transaction/status=voided"},
		"fault":      {"application/json", `{"fault":{"faultstring":"Rate limit"}}`, "the answer has /fault/faultstring=Rate limit; look whether these took effect"},
		"camel good": {"application/json", `{"paymentStatus":"PAID","isSuccess":true,"default":"x"}`, ""},
		"incomplete": {"application/json", `{"status":"requires_action"}`, "the answer has /status=requires_action, which may still succeed: ask the API"},
		"silent":     {"text/plain", ``, "1 of the done: the answer has no content: only its status says that these took effect; look whether that is so; --done /POINTER=TEXT counts only an answer with that text as done, of what is begun from then on"},
		"created":    {"201", ``, ""},
		"no content": {"204", ``, ""},
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				switch status, err := strconv.Atoi(a[0]); {
				case err == nil:
					w.Header().Set("Location", "/login")
					w.WriteHeader(status)
				case a[0] == "replayed":
					w.Header().Set("Idempotent-Replayed", "true")
				default:
					w.Header().Set("Content-Type", a[0])
				}
				_, _ = io.WriteString(w, a[1])
			})
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
			batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
			got := commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
			if a[2] == "" && strings.Contains(got.Err, "of the done") || !strings.Contains(got.Err, a[2]) {
				t.Errorf("it says %q, want %q", got.Err, a[2])
			}
			again := commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
			if a[2] == "" && strings.Contains(again.Err, "of the done") || !strings.Contains(again.Err, a[2]) || s.Sends.Load() != 1 {
				t.Errorf("once more, after %d sends: %q, want %q", s.Sends.Load(), again.Err, a[2])
			}
			commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--journal", file+".oncehttp.db", "--yes").Want(t, terminal.ExitOK)
			if pruned := commandtest.Run(t, batch...).Want(t, terminal.ExitOK); strings.Contains(pruned.Err, "of the done") {
				t.Errorf("without its answer: %q", pruned.Err)
			}
		})
	}
}

// TestBatchDoneOfEarlierRuns: a --done that rows of an earlier run were not judged by leaves their results, and the summary says so, with the number of those
// whose recorded answers are no success by it.
func TestBatchDoneOfEarlierRuns(t *testing.T) {
	t.Parallel()
	const judged, lacks = "rows of an earlier run were judged by other --done, --unknown or --declined than these: the result stands; --declined /POINTER=TEXT", "1 of the done: the answer lacks /status=paid, which --done asks for\n"
	for name, c := range map[string]struct {
		first, then []string
		want, not   []string
	}{
		"begun without":      {nil, []string{"--done", "/status=paid"}, []string{"2 " + judged, lacks}, nil},
		"begun with it":      {[]string{"--done", "/status=paid", "--done", "/status=open"}, []string{"--done", "/status=paid", "--done", "/status=open"}, nil, []string{"this --done", "lacks"}},
		"begun with another": {[]string{"--done", "/status=paid", "--done", "/status=open"}, []string{"--done", "/status=paid"}, []string{"2 " + judged, lacks}, nil},
		"unknown":            {nil, []string{"--done", "/id=x", "--done", "/status=paid", "--unknown", "/status=open"}, []string{"2 " + judged, "1 of the done: the answer is one of those that --unknown holds\n"}, []string{"lacks"}},
		"all satisfy it":     {nil, []string{"--done", "/status=paid", "--done", "/status=open"}, []string{"2 " + judged}, []string{"lacks"}},
		"declined":           {nil, []string{"--done", "/status=paid", "--declined", "/status=open"}, []string{"1 row of an earlier run was judged by other --done, --unknown or --declined than these", "1 declined (200)"}, []string{"lacks"}},
		"none is asked for":  {nil, nil, nil, []string{"this --done"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				text := `{"status":"paid"}`
				if strings.Contains(r.Header.Get("Idempotency-Key"), "o:2") {
					text = `{"status":"open"}`
				}
				_, _ = io.WriteString(w, text)
			})
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
			batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
			first := commandtest.Run(t, append(slices.Clip(batch), c.first...)...).Want(t, terminal.ExitOK)
			if strings.Contains(first.Err, "this --done") {
				t.Errorf("the first run says %q", first.Err)
			}
			again := commandtest.Run(t, append(slices.Clip(batch), c.then...)...)
			for _, text := range c.want {
				if !strings.Contains(again.Err, text) {
					t.Errorf("it says %q, want %q", again.Err, text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(again.Err, text) {
					t.Errorf("it says %q, and must not say %q", again.Err, text)
				}
			}
			if s.Sends.Load() != 2 {
				t.Errorf("%d sends, want 2", s.Sends.Load())
			}
		})
	}
}

// TestSeeOtherIsHeld: a 303 within the origin, as a gateway answers that has lost the session, is no success: the row is held, and can be settled.
func TestSeeOtherIsHeld(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/login")
		w.WriteHeader(http.StatusSeeOther)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "1 row: 1 held (303)") {
		t.Errorf("stderr %q", got.Err)
	}
	journal := file + ".oncehttp.db"
	seen := commandtest.SeenAs(t, journal, "idemp:o:1")
	commandtest.Run(t, "journal", "settle", seen, "--absent", "--yes", "--journal", journal).Want(t, terminal.ExitOK)
}

// TestAnswerAboutTheKey: a 4xx that speaks of idempotency is no refusal of the row: another request under the key may have taken effect. A 400 or 422 is held, and
// of another status no generation is advised.
func TestAnswerAboutTheKey(t *testing.T) {
	t.Parallel()
	const before = "another request, maybe of this row, may have taken effect"
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{http.StatusUnprocessableEntity, `{"error":"idempotency_key_reused"}`, "1 held (422)"}, {http.StatusNotFound, `{"error":"idempotency_key_reused"}`, before},
		{http.StatusUnprocessableEntity, `{"error":"Duplicate payment reference"}`, before}, {http.StatusBadRequest, `{"error":"order already paid"}`, before},
		{http.StatusPaymentRequired, `{"error":"already paid"}`, before},
	} {
		status, want := c.status, c.want
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, c.body)
		})
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
		got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}")
		if strings.Contains(got.Err, "--generation") || !strings.Contains(got.Err, want) {
			t.Errorf("%d: stderr %q", status, got.Err)
		}
		if line := got.Only(t); line.Result == results.Held && !strings.Contains(line.Why(), "the key may have been used before") {
			t.Errorf("%d: %q", status, line.Why())
		}
	}
}

// TestDeclinesAddUp: a run with one value of --declined has those of the journal, too, and so has its dry run.
func TestDeclinesAddUp(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		status := map[bool]string{true: "failed", false: "bounced"}[strings.Contains(string(b), `"1"`)]
		_, _ = io.WriteString(w, `{"status":"`+status+`"}`)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, append(batch, "--declined", "/status=failed")...).Want(t, terminal.ExitRefused)
	for _, more := range [][]string{{"--declined", "/status=bounced", "--dry-run"}, {"--declined", "/status=bounced"}, {"--dry-run"}, nil} {
		if got := commandtest.Run(t, append(batch, more...)...); !strings.Contains(got.Err, "2 declined") {
			t.Errorf("%v: status %d, stderr %q", more, got.Status, got.Err)
		}
	}
	for want, more := range map[string][]string{"1 would be sent": nil, "2 would be sent": {"--yes"}} { // one was told as done before
		if got := commandtest.Run(t, append(append(batch, "--generation", "2", "--dry-run"), more...)...); !strings.Contains(got.Err, want) {
			t.Errorf("generation 2: %q, want %q", got.Err, want)
		}
	}
}

// TestBatchOfARestoredJournal: a batch on a restored journal says so, also in a dry run, and advises no generation: what counts as new there may have been done.
func TestBatchOfARestoredJournal(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"amount":["is missing"]}`)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--new-journal"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "restored", "--taken", time.Now().UTC().Format(time.RFC3339Nano), "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, "id\n1\n2\n")
	status = http.StatusBadRequest
	const compare = "1 invalid (400): the journal was restored, and an earlier send may have succeeded: compare with the API (oncehttp audit) before they are tried anew"
	for _, dry := range []bool{true, false} {
		args := batch
		if dry {
			args = append(args, "--dry-run")
		}
		if got := commandtest.Run(t, args...).Err; !strings.Contains(got, "the journal was restored at 20") || strings.Contains(got, "--generation 2") || strings.Contains(got, compare) == dry {
			t.Errorf("%v: %q", args, got)
		}
	}
}

// TestBatchOfARestoredJournalWithoutKeys: where the API has no keys, the same key protects nothing. A run on a restored journal wants --yes before it sends.
func TestBatchOfARestoredJournalWithoutKeys(t *testing.T) {
	t.Parallel()
	var sends atomic.Int64
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { sends.Add(1); w.WriteHeader(http.StatusOK) })
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--new-journal", "--profile", "none"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "restored", "--taken", time.Now().UTC().Format(time.RFC3339Nano), "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, "id\n1\n2\n")
	got := commandtest.Run(t, batch...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "nothing was sent") || !strings.Contains(got.Err, "--yes") || sends.Load() != 1 {
		t.Errorf("%d sends, %q", sends.Load(), got.Err)
	}
	if commandtest.Run(t, append(batch, "--yes")...).Want(t, terminal.ExitOK); sends.Load() != 2 {
		t.Errorf("%d sends with --yes, want 2", sends.Load())
	}
}
