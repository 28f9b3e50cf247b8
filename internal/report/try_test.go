//go:build unix

package report_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/report"
)

// wireLog keeps what a server was sent, one line a request.
type wireLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *wireLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte("cut")
	}
	key, sent := r.Header["Idempotency-Key"]
	text := fmt.Sprintf("%s %s key=%q/%t auth=%q body=%s", r.Method, r.URL, key, sent, r.Header.Get("Authorization"), body)
	if len(body) > 1000 {
		text = fmt.Sprintf("%s %s %d bytes, %d of them x", r.Method, r.URL, len(body), strings.Count(string(body), "x"))
	}
	l.mu.Lock()
	l.lines = append(l.lines, text)
	l.mu.Unlock()
	if strings.Contains(r.URL.RawQuery, "slow") {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
	}
}

func header(auth, key string) map[string][]string {
	return map[string][]string{"Authorization": {auth}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
}

const (
	tryKey = "8e03978e-40d5-43e8-bc93-6894a57f9324"
	tryRef = "r0123456789abcdef01234567"
)

func tryExchange(at, took float64, url, auth, key, body string) report.Exchange {
	return report.Exchange{
		At: at, Took: took, Method: "POST", URL: url, Key: key, KeySent: true, Ref: tryRef, Status: 201, Shows: true,
		Request: report.NewMessage(header(auth, key), []byte(body), 1<<10),
	}
}

// scriptOf writes the report as JSON, which has the lines, and reads them back.
func scriptOf(t *testing.T, c report.Case, target string) []string {
	t.Helper()
	r := report.New(report.KindCheck)
	r.Target = target
	r.Config = map[string]string{"witness": target + "/_effects?ref={ref}#/count"}
	r.Cases = []report.Case{c}
	got, err := report.Parse(strings.NewReader(write(t, report.JSON, report.Options{}, r)))
	if err != nil {
		t.Fatal(err)
	}
	return got.Cases[0].Try
}

// TestTryRuns gives the lines to a shell, and looks at what a server is sent: the
// requests of the finding, in their order, with new keys and references, and
// without a credential in any line.
func TestTryRuns(t *testing.T) {
	t.Parallel()
	wire := &wireLog{}
	server := httptest.NewServer(wire)
	defer server.Close()
	body := `{"reference":"` + tryRef + `","note":"it's"}`
	c := report.Case{ID: "scope/x", Level: report.Safety, Verdict: report.Fail, Witness: report.Counted, Rule: "r", Exchanges: []report.Exchange{
		tryExchange(0, 5, "/payments?a=1&b=2", "Bearer "+secret, tryKey, body),
		tryExchange(6, 5, "/refunds", "Bearer otherprincipal", strings.ToUpper(tryKey), body),
		tryExchange(12, 5, "/refunds", "Bearer "+secret, "", body),
		tryExchange(18, 5, "/refunds", "Bearer "+secret, `""`, body),
		{At: 24, Took: 1, Method: "POST", URL: "/not-shown", Key: "k", Request: report.NewMessage(nil, nil, 0)},
	}}
	c.Exchanges[1].Caller = "second"
	script := strings.Join(scriptOf(t, c, server.URL), "\n")
	for _, leak := range []string{secret, "otherprincipal", "/not-shown"} {
		if strings.Contains(script, leak) {
			t.Errorf("%s stands in the script", leak)
		}
	}
	command := exec.Command("bash", "-euc", "AUTH_A='Bearer a' AUTH_B='Bearer b'\n"+script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, script)
	}
	if len(wire.lines) != 5 {
		t.Fatalf("%d requests, want 5:\n%s\n%s", len(wire.lines), strings.Join(wire.lines, "\n"), script)
	}
	fresh := wire.lines[0][strings.Index(wire.lines[0], tryKey[:26]):][26:36]
	if fresh == tryKey[26:] || strings.Trim(fresh, "0123456789") != "" {
		t.Errorf("the key ends in %q, want ten new digits", fresh)
	}
	sent := `body={"reference":"` + tryRef[:15] + fresh + `","note":"it's"}`
	for i, want := range []string{
		`POST /payments?a=1&b=2 key=["` + tryKey[:26] + fresh + `"]/true auth="Bearer a" ` + sent,
		`POST /refunds key=["` + strings.ToUpper(tryKey[:26]) + fresh + `"]/true auth="Bearer b" ` + sent,
		`POST /refunds key=[""]/true auth="Bearer a" ` + sent,
		`POST /refunds key=["\"\""]/true auth="Bearer a" ` + sent,
		`GET /_effects?ref=` + tryRef[:15] + fresh + ` key=[]/false auth="Bearer a" body=`,
	} {
		if wire.lines[i] != want {
			t.Errorf("request %d is\n%s, want\n%s", i+1, wire.lines[i], want)
		}
	}
}

// TestTryKeepsBytes: a key that is not UTF-8 is sent with the same bytes again,
// though JSON cannot hold them; a credential among such fields is not shown.
func TestTryKeepsBytes(t *testing.T) {
	t.Parallel()
	wire := &wireLog{}
	server := httptest.NewServer(wire)
	defer server.Close()
	c := report.Case{ID: "key/x", Level: report.Should, Verdict: report.Warn, Rule: "r", Exchanges: []report.Exchange{
		tryExchange(0, 5, "/payments", "Bearer "+secret, tryKey+"\xe9", "{}"),
	}}
	c.Exchanges[0].Request.Header["Idempotency-Key"] = []string{tryKey + "\uFFFD"} // what is left of it in JSON
	c.Exchanges[0].Request.HeaderBytes = map[string][][]byte{
		"Idempotency-Key": {[]byte(tryKey + "\xe9")}, "X-Api-Key": {[]byte(secret + "\xe9")},
	}
	script := strings.Join(scriptOf(t, c, server.URL), "\n")
	if strings.Contains(script, secret) {
		t.Errorf("a credential stands in the script:\n%s", script)
	}
	command := exec.Command("bash", "-euc", "AUTH_A='Bearer a' X_API_KEY_A=x\n"+script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, script)
	}
	if len(wire.lines) != 1 || !strings.Contains(wire.lines[0], `\xe9"]`) {
		t.Errorf("sent: %q, want a key that ends in the byte e9\n%s", wire.lines, script)
	}
}

// TestTryOverlaps: what overlapped is sent so again, a client that left leaves,
// and a large body is sent whole.
func TestTryOverlaps(t *testing.T) {
	t.Parallel()
	wire := &wireLog{}
	server := httptest.NewServer(wire)
	defer server.Close()
	left := tryExchange(3000, 400, "/leave?slow", "", "k", "")
	left.Status, left.Error = 0, "the client left"
	large := tryExchange(4000, 50, "/large", "", "k", `{"padding":""}`)
	large.Request.Run = &report.Run{At: 12, Of: "x", Count: 200_000}
	large.Request.BodyBytes += 200_000
	c := report.Case{ID: "inflight/x", Level: report.Safety, Verdict: report.Fail, Rule: "r", Exchanges: []report.Exchange{
		tryExchange(0, 2000, "/lead?slow", "", "k", ""),
		tryExchange(500, 100, "/follow", "", "k", ""), tryExchange(500, 100, "/follow", "", "k", ""), tryExchange(500, 100, "/follow", "", "k", ""),
		tryExchange(500, 100, "/follow", "", "k", ""), tryExchange(700, 100, "/other", "", "k", ""), tryExchange(700, 100, "/other", "", "k", ""),
		tryExchange(2500, 100, "/later", "", "k", ""), left, large,
	}}
	lines := scriptOf(t, c, server.URL)
	began := time.Now()
	if output, err := exec.Command("bash", "-uc", "AUTH_A=''\n"+strings.Join(lines, "\n")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, strings.Join(lines, "\n"))
	}
	var paths []string
	for _, line := range wire.lines {
		paths = append(paths, strings.Fields(line)[1])
	}
	slices.Sort(paths[min(1, len(paths)):min(7, len(paths))]) // what is in the background has no order
	want := "/lead?slow /follow /follow /follow /follow /other /other /later /leave?slow /large"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("the requests are %s, want %s\n%s", got, want, strings.Join(lines, "\n"))
	}
	for _, part := range []string{"& sleep 0.50\n", "/follow -H ", "& done; sleep 0.20\n", "-X POST " + server.URL + "/other", "; wait\n"} {
		if !strings.Contains(strings.Join(lines, "\n"), part) {
			t.Errorf("%q is missing in\n%s", part, strings.Join(lines, "\n"))
		}
	}
	if n := strings.Count(strings.Join(lines, "\n"), "/follow"); n != 1 {
		t.Errorf("the four alike are %d lines, want 1", n)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := wire.lines[len(wire.lines)-1]; got != "POST /large 200014 bytes, 200000 of them x" {
		t.Errorf("the large request is %.200s", got)
	}
}

// TestTryWaits: a request that was sent again and again until something gave in
// is sent again for as long.
func TestTryWaits(t *testing.T) {
	t.Parallel()
	c := report.Case{ID: "net/x", Level: report.Liveness, Verdict: report.Fail, Rule: "r", Actual: "409", Expected: "201",
		Findings: []report.Finding{{Verdict: report.Fail, Text: "expected 201, saw 409"}, {Verdict: report.Pass, Text: "another"}}}
	for _, at := range []float64{0, 4, 12, 500, 1000} {
		c.Exchanges = append(c.Exchanges, tryExchange(at, 2, "/p", "", "k", ""))
	}
	lines := scriptOf(t, c, "http://127.0.0.1:1")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "for i in $(seq 5); do curl ") || !strings.HasSuffix(last, "; sleep 0.25; done") {
		t.Errorf("the line is %s", last)
	}
	r := report.New(report.KindCheck)
	r.Target, r.Cases = "http://127.0.0.1:1", []report.Case{c}
	if text := write(t, report.Text, report.Options{}, r); strings.Contains(text, "expected 201, saw 409") || !strings.Contains(text, "another") {
		t.Errorf("what is expected and seen is said twice:\n%s", text)
	}
}

// TestTryIsOfFindingsOnly: what passed, or was sent by a client under judgement,
// has no lines; neither has what was not kept.
func TestTryIsOfFindingsOnly(t *testing.T) {
	t.Parallel()
	c := report.Case{ID: "a/b", Level: report.Must, Verdict: report.Pass, Rule: "r", Exchanges: []report.Exchange{tryExchange(0, 1, "/", "", "k", "")}}
	if lines := scriptOf(t, c, "http://127.0.0.1:1"); len(lines) != 0 {
		t.Errorf("a pass has %q", lines)
	}
	c.Verdict = report.Fail
	if lines := scriptOf(t, c, "not a URL"); len(lines) != 0 {
		t.Errorf("a target that is no URL has %q", lines)
	}
	c.Exchanges[0].Request.BodyBytes = 99
	if lines := scriptOf(t, c, "http://127.0.0.1:1"); len(lines) != 1 || !strings.HasPrefix(lines[0], "# not kept whole") {
		t.Errorf("a body that was not kept gives %q", lines)
	}
}

// TestCallersAreToldApart: two requests that differ in a credential differ in the
// report too.
func TestCallersAreToldApart(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases[0].Exchanges[1].Request = report.NewMessage(header("Bearer otherprincipal", "k"), nil, 0)
	text := write(t, report.JSON, report.Options{}, r)
	got, err := report.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	x := got.Cases[0].Exchanges
	a, b := x[0].Request.Header["Authorization"][0], x[1].Request.Header["Authorization"][0]
	if a != "[redacted A]" || b != "[redacted B]" {
		t.Errorf("the credentials are %q and %q", a, b)
	}
	if again := write(t, report.JSON, report.Options{}, got); again != text {
		t.Error("written again the report differs")
	}
}
