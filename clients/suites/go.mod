module github.com/oncehttp/oncehttp/clients/suites

go 1.25.0

replace github.com/oncehttp/oncehttp => ../..

require github.com/oncehttp/oncehttp v0.0.0-00010101000000-000000000000

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
