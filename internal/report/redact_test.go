package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	basic := "YWxpY2U6aHVudGVyMmh1bnRlcg==" // alice:hunter2hunter
	r := sample()
	r.Target = "http://alice:userinfopw@127.0.0.1/p?access_token=querysecret"
	r.Config["api-key"] = "configsecret"
	r.Config["as"] = "Authorization: Bearer otherprincipal"
	c := &r.Cases[0]
	c.Actual = "the server said otherprincipal and hunter2hunter\nCookie: sid=cookiesecret; lang=en"
	c.Reason = `{"client_secret":"membersecret","pin_token": 4711471147, "nested":"{"}`
	c.Exchanges[0].URL = "/payments?sig=1&x-signature=querysignature"
	c.Exchanges[0].Note = "form: password=formsecret&x=1"
	c.Exchanges[0].Request = report.NewMessage(map[string][]string{
		"Authorization": {"Basic " + basic}, "X-Api-Key": {"headersecret"}, "Cookie": {"a=cookiesecret; b=secondcookie"}, "X-Auth": {"authsecret"},
		"Location": {"http://u:locationpw@h/"},
	}, []byte(`{"password":"bodysecr`), 100)
	c.Try = []string{`curl`}
	c.Try[0] += ` -H 'Proxy-Authorization: Basic quote'\''dsecret' --data-raw '{"token":"curlsecret"}'`
	secrets := []string{
		secret, basic, "userinfopw", "querysecret", "configsecret", "otherprincipal", "hunter2hunter", "cookiesecret", "secondcookie", "verysecretcookie",
		"membersecret", "4711471147", "querysignature", "formsecret", "headersecret", "authsecret", "locationpw", "bodysecr", "dsecret", "curlsecret",
	}
	all := write(t, report.JSON, report.Options{ShowSecrets: true}, r)
	for _, s := range secrets {
		if !strings.Contains(strings.ReplaceAll(all, `\\`, `\`), s) {
			t.Fatalf("%s is not in the report to begin with", s)
		}
	}
	for _, f := range report.Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			text := write(t, f, report.Options{Verbose: true}, r)
			for _, s := range secrets {
				if strings.Contains(text, s) {
					t.Errorf("%s is in the output", s)
				}
			}
			if !strings.Contains(text, "redacted") {
				t.Error("nothing says that something was left out")
			}
			if !strings.Contains(text, "8e03978e") {
				t.Error("the idempotency key is gone too")
			}
		})
	}
}

func TestDiffRedacts(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases[0].Actual = "got " + secret
	var b strings.Builder
	if err := report.WriteDiff(&b, betterSample(), r, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), secret) || !strings.Contains(b.String(), "[redacted]") {
		t.Errorf("the secret is in the comparison:\n%s", &b)
	}
}

func TestInnocentTextStays(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Target = "http://token-service:8080/payments"
	texts := []string{
		`201 {"id":"p_1","amount":100,"note":"a: b"}`, "Idempotency-Key: abc-1", `{"idempotency_token":"t-1"}`, "status=201&key=k", "a: b: c",
	}
	for i, text := range texts {
		r.Cases = append(r.Cases, report.Case{ID: fmt.Sprintf("x/%d", i), Level: report.Must, Verdict: report.Seen, Actual: text})
	}
	got, err := report.Parse(strings.NewReader(write(t, report.JSON, report.Options{}, r)))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if actual := find(t, got, fmt.Sprintf("x/%d", i)).Actual; actual != text {
			t.Errorf("%q became %q", text, actual)
		}
	}
	if got.Target != r.Target {
		t.Errorf("the target became %q", got.Target)
	}
}

func TestSecretName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Authorization": true, "proxy-authorization": true, "Cookie": true, "Set-Cookie": true, "X-API-Key": true, "api_key": true, "X-Auth-Token": true,
		"Stripe-Signature": true, "Signature-Input": false, "client_secret": true, "Idempotency-Key": false, "X-Idempotency-Token": false, "Content-Type": false, "key": false, "amount": false, "author": false,
	} {
		if got := report.SecretName(name); got != want {
			t.Errorf("SecretName(%q) = %t, want %t", name, got, want)
		}
	}
}

// What an answer says openly is no secret because a cookie holds it too.
func TestOpenlySaidStays(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases[0].Exchanges[0].Response = report.NewMessage(map[string][]string{"Set-Cookie": {"last=payments_4711; Path=/"}}, []byte(`{"id":"payments_4711"}`), 100)
	r.Cases[0].Actual = "201 of payments_4711"
	text := write(t, report.Text, report.Options{}, r)
	if !strings.Contains(text, "201 of payments_4711") || !strings.Contains(text, `{"id":"payments_4711"}`) {
		t.Errorf("the id is gone:\n%s", text)
	}
	if page := write(t, report.HTML, report.Options{}, r); strings.Contains(page, "last=payments_4711") {
		t.Error("the cookie is shown")
	}
}
