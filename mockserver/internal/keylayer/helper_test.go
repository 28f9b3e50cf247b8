package keylayer_test

import "github.com/oncehttp/oncehttp/mockserver/internal/mocktest"

type (
	client  = mocktest.Client
	request = mocktest.Request
)
