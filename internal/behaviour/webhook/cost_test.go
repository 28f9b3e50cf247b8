package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

// referenceRecords is the number of records in the journal of BenchmarkReference.
const referenceRecords = 100_000

// BenchmarkReference is one event that names a reference which no record has, on a file with many records: it reads them all.
func BenchmarkReference(b *testing.B) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	a := apis()[0]
	j, err := bolt.Open(filepath.Join(b.TempDir(), "j.db"), bolt.Options{})
	must(err)
	defer j.Close()
	prof, _ := profile.ByName(a.name)
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Profile: prof, Transport: wiretest.Paid(), Operation: oncehttp.Writes, KeepFields: []string{a.keep}})
	must(err)
	var together sync.WaitGroup
	for worker := range 256 {
		together.Go(func() {
			for i := worker; i < referenceRecords; i += 256 {
				body := a.request(fmt.Sprint(i))
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "https://api.example.com"+a.path, strings.NewReader(body))
				if err == nil {
					err = c.Enqueue(req, oncehttp.Key(fmt.Sprint("k", i)))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	together.Wait()
	h, err := oncehttp.Webhook(c, oncehttp.WebhookConfig{Secrets: [][]byte{[]byte(a.secret)}, URL: address, Account: a.merchant})
	must(err)
	body := a.event("nobody's")
	s, _ := sign.WebhookOf(a.name)
	for b.Loop() {
		req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(body))
		req.Header = s.Sign([]byte(a.secret), address, time.Now(), []byte(body))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, req); w.Code != http.StatusOK {
			text, _ := io.ReadAll(w.Body)
			b.Fatalf("answered %d, %s", w.Code, text)
		}
	}
}
