# Each target is one command that can be run by hand as well; .ci/run runs
# what must hold before anything lands.
.PHONY: all build test test-whole race lint fuzz bench cross sim sim-mutants sim-vanish chaos demo ci

all: lint test

build: ## the program, for this machine
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o mutirao ./cmd/mutirao

test: ## every test
	go test ./...

test-whole: ## every test, and of what is large not a sample but all
	MUTIRAO_WHOLE=1 go test -timeout 0 ./...

race: ## every test under the race detector
	go test -race ./...

lint: ## formatting, vet, staticcheck
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool staticcheck ./...

bench: ## the figures of docs/performance.md
	go test -run '^$$' -bench . -benchtime 3000x -count 3 ./node/assemble ./node/store ./node/mesh ./choreo

fuzz: ## every fuzz target for FUZZTIME (default 1m) each
	bash .ci/fuzz $(or $(FUZZTIME),1m)

cross: ## builds without cgo for every system that it is meant for
	bash .ci/cross

sim: ## fresh seeds of the simulator, for FOR (default 10m)
	go run ./internal/sim/mutants -for $(or $(FOR),10m) -first $(or $(FIRST),$$(date +%s))

sim-mutants: ## after how many seeds each deliberately broken variant is caught; those of worklists by tests
	go test ./worklist -run TestMutants -mutants all -timeout 0 -v
	go run ./internal/sim/mutants -break all -seeds $(or $(SEEDS),1000)

sim-vanish: ## every partner vanishes at every event of the eleven tasks
	go test ./internal/sim -run TestVanish -every 1 -timeout 0

chaos: ## five real processes among all that can go wrong, for FOR (default 10m); LIAR=1: and a sixth that lies; needs root
	go test ./test/chaos -run TestChaos -for $(or $(FOR),10m) -seed $(or $(SEED),0) $(if $(LIAR),-liar) -timeout 0 -v

demo: ## the fire call, over three processes
	go run ./cmd/mutirao demo --headless

ci:
	bash .ci/run
