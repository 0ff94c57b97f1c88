package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A hint that names a command for which the Portuguese page has words of its own has them on the English page, too.
func TestHintsOfThePageNameNoCommands(t *testing.T) {
	command := regexp.MustCompile("mutirao [a-z]|--[a-z]")
	en := languages()[0]
	for _, line := range reasonLines(allForms) {
		english, other, _ := strings.Cut(strings.TrimPrefix(line, asWhole), " => ")
		if !command.MatchString(english) || command.MatchString(other) {
			continue
		}
		text := blank.ReplaceAllString(english, "x")
		if got := en.reason(text); command.MatchString(got) {
			t.Errorf("%q is %q", text, got)
		}
	}
	if got, want := en.reason("give a reason, which its log keeps: --reason WHY"), "write down why: its log keeps that"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

// What the node words is said in Portuguese, with all that is in it; what the page does not know stays.
func TestReasons(t *testing.T) {
	en, pt := languages()[0], languages()[1]
	for text, want := range map[string]string{
		"instance created: engine=engine-7, station=station":               "instância criada: engine=engine-7, station=station",
		"started, building upon a, b, and succeeded at once: x = 1, y = 2": "iniciada, com base em a, b, e logo concluída: x = 1, y = 2",
		"started, and succeeded at once":                                   "iniciada, e logo concluída",
		"succeeded":                                                        "concluída", "succeeded: report = smoke": "concluída: report = smoke",
		"started, try 2, building upon a, b": "iniciada, tentativa 2, com base em a, b",
		"bia has the task procedure-1":       "a tarefa procedure-1 está com bia",
		"bia has the task weigh, not ana":    "a tarefa weigh está com bia, não com ana",
		"the boy has fever":                  "the boy has fever", "feed: bia has it": "feed: está com bia",
		"the result of weigh does not count, as the item was given back; it is kept":                                                                                             "o resultado de weigh não vale, porque a tarefa foi devolvida; está guardado",
		"a result of bia is kept and does not count, as the item was taken back":                                                                                                 "um resultado de bia está guardado e não vale, porque a tarefa foi retomada",
		"engine-7, who holds procedure-1, cannot be asked now":                                                                                                                   "engine-7, que tem procedure-1, não pode ser consultado agora",
		"reach failed, so mend stands in for it, by bia (its time was over): partition far gave no result in time":                                                               "reach falhou; mend fica no lugar, com bia (tempo esgotado): a partição far não deu resultado a tempo",
		"reach failed, so mend stands in for it, by nobody yet (its holder was silent for too long)":                                                                             "reach falhou; mend fica no lugar, ainda sem ninguém (quem a tinha ficou tempo demais sem dar sinal)",
		"reach failed, so what waits for it is blocked: no water":                                                                                                                "reach falhou e bloqueia o que depende dela: no water",
		"a failed, so what waits for it is blocked; b failed, but what waits for it goes on (its holder was evicted, as the coordinator of term 4 judged)":                       "a falhou e bloqueia o que depende dela; b falhou, e o que depende dela continua (quem a tinha foi removido da rede, como julgou o coordenador do mandato 4)",
		"the holder of the data states is lost, and bia goes on with them (its holder was silent for too long)":                                                                  "perdeu-se quem tinha os estados dos dados, e bia continua com eles (quem a tinha ficou tempo demais sem dar sinal)",
		"compensation of lay failed: stuck":                                                                                                                                      "a compensação de lay falhou: stuck",
		"started, building upon a, b and 3 more":                                                                                                                                 "iniciada, com base em a, b e mais 3",
		"it waits for somebody to perform it: task look: it is for the users with role crew (one who has it on the worklist takes it; mutirao role list says who has role crew)": "espera que alguém a faça: tarefa look: é para os usuários com o papel crew (quem a tem na lista a pega; mutirao role list diz quem tem o papel crew)",
		"weigh: it is for the role nurse, which you do not have":                                                                                                                 "weigh: é para o papel nurse, que você não tem",
		"try 1 failed: something => else":                                                                                                                                        "a tentativa 1 falhou: something => else", "failed: {1}": "não deu para fazer: {1}",
		"a result of ana is kept and does not count, as the item was handed on: report = late": "um resultado de ana está guardado e não vale, porque a tarefa foi passada a outra pessoa: report = late",
		"partition engine: nobody has role crew, which task reach needs (have somebody join with it: mutirao invite --role crew, or give it to a user: mutirao role grant USER crew)\npartition reserve: nobody has role medic, which task mend needs (have somebody join with it: mutirao invite --role medic, or give it to a user: mutirao role grant USER medic)": "partition engine: ninguém tem o papel crew, de que a tarefa reach precisa (alguém precisa entrar com ele: mutirao invite --role crew, ou receber o papel: mutirao role grant USER crew)\npartition reserve: ninguém tem o papel medic, de que a tarefa mend precisa (alguém precisa entrar com ele: mutirao invite --role medic, ou receber o papel: mutirao role grant USER medic)",
		"file a.jpg is not kept: file a.jpg has 2 MB, and there is room for 1 MB here":                 "o arquivo a.jpg não foi guardado: o arquivo a.jpg tem 2 MB, e aqui há lugar para 1 MB",
		`file a is not kept: "a" cannot be what a file is called: want 1 to 128 bytes`:                 `o arquivo a não foi guardado: "a" não serve de nome de arquivo: são de 1 a 128 bytes`,
		`"." cannot be what a file is called: want a name without a folder`:                            `"." não serve de nome de arquivo: deve ser um nome sem pasta`,
		"file plan.pdf: its content is lost: two: is gone for good":                                    "arquivo plan.pdf: o conteúdo se perdeu: two: não volta mais",
		"p0: station: p0: file sec3: its content is lost: tec2: it is not here; giv: is gone for good": "p0: station: p0: arquivo sec3: o conteúdo se perdeu: tec2: não o tem; giv: não volta mais",
		"it waits for somebody to perform it: task look: it is for the users with role crew (one who has it on the worklist takes it; mutirao role list says who has role crew); waits for file a.bin: 0 B of 2.5 MB are here, from engine-7": "espera que alguém a faça: tarefa look: é para os usuários com o papel crew (quem a tem na lista a pega; mutirao role list diz quem tem o papel crew); espera pelo arquivo a.bin: 0 B de 2,5 MB já estão aqui, de engine-7",
		"m1, m2 given to ana (lock)": "m1, m2 dadas a ana (pega offline)", "failed with bia: no water; pump stuck; expired": "falhou com bia: no water; pump stuck; expired",
		"result of bia: foto = f.png (87.3 kB), w = 2":                  "resultado de bia: foto = f.png (87,3 kB), w = 2",
		"bia extends its deadline to 11m10s after it can be done":       "bia estende o prazo dela para 11 min 10 s depois de poder ser feita",
		"waits for file plan.pdf: 1 MB of 3 MB are here, from engine-7": "espera pelo arquivo plan.pdf: 1 MB de 3 MB já estão aqui, de engine-7",
		"cannot write: no space":                                        "não consegue gravar: no space", "engine-7: cannot be reached": "engine-7: não pode ser alcançado",
		"3 instances cannot be read and are set aside: mutirao instances --all":                                                                                                   "3 instâncias não podem ser lidas e estão postas de lado: mutirao instances --all",
		"a partner has what this node signed and its store lacks: the store was restored from a backup, or lost what it had written. The node goes on as one that is new":         "a partner tem o que este nó assinou e seu armazenamento não tem: ele foi restaurado de uma cópia, ou perdeu o que tinha gravado. O nó continua como se fosse novo",
		"more tasks use crane at once than there is of it (1): it is given to load, and in use by unload as well; unload was presumed to have failed, and may go on all the same": "mais tarefas usam crane ao mesmo tempo do que há (1): foi cedido a load, e está em uso por unload também; presumiu-se que unload falhou, mas talvez continue mesmo assim",
		"it goes on here, and base presumed that it failed: expired; crane is in use by load, unload as well":                                                                     "continua aqui, e base presumiu que falhou: expirou; crane está em uso por load, unload também",
		`no instance "nope" here`:            `não há instância "nope" aqui`,
		"list them: mutirao instances --all": "a página Instâncias mostra as que há",
		"step: two amendments were made side by side, and set one key unlike: task step, timeout: 5m against 10m; what counts is 10m":                                                                                    "step: duas emendas foram feitas uma sem saber da outra, e mudaram o mesmo de modo diferente: tarefa step, timeout: 5m contra 10m; vale 10m",
		"extra: two amendments were made side by side, and add task extra unlike; it is as the first of them says, in partition main, and what was begun as the other says counts; that can be added under another name": "extra: duas emendas foram feitas uma sem saber da outra, e acrescentam a tarefa extra de modo diferente; vale como diz a primeira, na partição main, e conta o que foi começado como diz a outra; ela pode ser acrescentada com outro nome",
		"two amendments were made side by side, and set one key unlike: workflow, final: a against b; neither counts":                                                                                                    "duas emendas foram feitas uma sem saber da outra, e mudaram o mesmo de modo diferente: fluxo, final: a contra b; nenhum dos dois vale",
		"two amendments were made side by side, and give partition far to different partners; it moves to whom the later of them says, and what was begun elsewhere counts":                                              "duas emendas foram feitas uma sem saber da outra, e dão a partição far a parceiros diferentes; passa a quem a posterior diz, e conta o que foi começado em outro lugar",
		"two amendments were made side by side, and add data x unlike; it is as the first of them says, and what the other needs can be added under another name":                                                        "duas emendas foram feitas uma sem saber da outra, e acrescentam o dado x de modo diferente; vale como diz a primeira, e o que a outra pede pode ser acrescentado com outro nome",
		"t11 has failed: expired": "t11 falhou: expirou",
		"a result of ana is kept and does not count, as it had passed to the responsible user, with its deadline near: w = 2.5": "um resultado de ana está guardado e não vale, porque ela tinha passado a quem responde, com o prazo próximo: w = 2,5",
		"succeeded, try 2: hours = 2.5, note = at 3.5 m, n = 2":                                                                 "concluída, tentativa 2: hours = 2,5, note = at 3.5 m, n = 2",
		"result of bia: hours = 2.5, made from that of weigh":                                                                   "resultado de bia: hours = 2,5, feito a partir do de weigh",
		"taken back: its user is no longer entitled":                                                                            "retomada: quem a tinha não pode mais fazê-la",
		"station adopts the result 1841fe4d39":                                                                                  "station adota o resultado 1841fe4d39",
		"no water":                                                                                                              "no water", "": "", "what nobody knows": "what nobody knows", "started twice": "started twice",
		"h: it sets q, which was changed after the state that fired it":                                                                                                              "h: muda q, que tinha mudado depois do estado que a disparou",
		"a result of alfa is kept and does not count, as the task had failed by then":                                                                                                "um resultado de alfa está guardado e não vale, porque a tarefa já tinha falhado",
		"a result of alfa is kept and does not count, as nothing is to be undone by it any more":                                                                                     "um resultado de alfa está guardado e não vale, porque não há mais nada a desfazer com isso",
		"undo1 is no longer yours, as nothing is to be undone by it any more":                                                                                                        "undo1 não está mais com você, porque não há mais nada a desfazer com isso",
		"no key; since then: it jumped back, and waits for the next step of recovery":                                                                                                "no key; desde então: os dados foram repostos, e falta o próximo passo da recuperação",
		"hand has failed: the instance is interrupted: no key; since then: it jumped back, and waits for the next step of recovery":                                                  "hand falhou: a instância está interrompida: no key; desde então: os dados foram repostos, e falta o próximo passo da recuperação",
		`--when "foo ==" is no condition over the data of k: at its character 6: not an expression: it ends too early (something is missing at its end, or a bracket is not closed)`: `Até que isto valha: "foo ==" não é uma condição sobre os dados de k: no caractere 6: não é uma expressão: termina cedo demais (falta algo no fim, ou um parêntese não foi fechado)`,
		"there is no state S9: the history has S0 to S4":                                                                                                                             "não há o estado S9: a história tem de S0 a S4",
		"given to worker worker": "dada ao executor worker", "compensation given to worker w at station, try 2": "compensação dada ao executor w em station, tentativa 2",
		"alfa recovers it: compensate, 2 steps": "alfa conserta: desfazer, 2 passos", "alfa recovers it: jump-back, n = 5": "alfa conserta: repor dados, n = 5",
		`this node has no application "xa": add it under applications in config.yaml`:                                                                                               `este nó não tem a aplicação "xa": acrescente-a em applications, no arquivo config.yaml`,
		"nb: it was undone by an order that does not count: what it did may have to be done again":                                                                                  "nb: foi desfeita por uma ordem que não vale: talvez o que ela fez tenha de ser feito de novo",
		"an amendment that does not go together with one that was made side by side has no effect: workflow, final: n == 2, says alfa":                                              "uma emenda que não combina com outra que foi feita sem saber dela não tem efeito, diz alfa: workflow, final: n == 2",
		"the instance runs with data c is new from now on; what does not go together with an amendment that was made side by side has no effect: workflow, final: c > 8, says alfa": "a instância segue com estas mudanças a partir de agora, diz alfa: o dado c é novo; não tem efeito o que não combina com uma emenda que foi feita sem saber desta: workflow, final: c > 8",
		"an amendment came too late: a final state had ended the instance by the definition of before; it has no effect: workflow, final: n == 2":                                   "uma emenda chegou tarde: um estado final já tinha encerrado a instância pela definição anterior; ela não tem efeito: workflow, final: n == 2",
	} {
		if got := pt.reason(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		plain := strings.Replace(text, "11m10s", "11 min 10 s", 1)
		if got := en.reason(text); got != plain && !strings.HasPrefix(text, "--") && !strings.HasPrefix(text, "list them: ") {
			t.Errorf("%q is %q in English", text, got)
		}
	}
	wrong := `"foo ==" is no condition over the data of k: at its character 6: not an expression: it ends too early`
	if got, want := en.reason("--when "+wrong), en.say("repair.when")+": "+wrong; got != want {
		t.Errorf("in English it is %q, want %q", got, want)
	}
	if got, want := pt.reason("--when "+wrong), pt.say("repair.when")+": "; !strings.HasPrefix(got, want) {
		t.Errorf("in Portuguese it is %q, want that it begins with %q", got, want)
	}
	long := "failed: " + strings.Repeat("x", mostReason)
	if pt.reason(long) != long {
		t.Error("a long text is looked up")
	}
}

// States and moments that stand in a text of the node are said as elsewhere on the page, in both languages; in what
// people write they stay.
func TestReasonsWithStatesAndMoments(t *testing.T) {
	en, pt := languages()[0], languages()[1]
	when := time.Date(2026, 7, 1, 7, 49, 37, 0, time.UTC)
	written := when.Format(time.RFC3339)
	inEnglish, inPortuguese := en.moment(when, time.Now()), pt.moment(when, time.Now())
	for text, want := range map[string][2]string{
		"d1 is FAILED: only what is READY or RUNNING can be stopped": {
			"d1 is failed: only what is ready or running can be stopped",
			`o estado de d1 é "falhou": só se para o que está pronto ou em execução`,
		},
		"d1 is NOT_READY: nothing is to be decided about it; try again": {
			"d1 is not ready: nothing is to be decided about it; try again",
			`o estado de d1 é "ainda não pronta": não há o que decidir sobre ela; tente de novo`,
		},
		"that was decided about d1 already, by eva at " + written: {
			"that was decided about d1 already, by eva at " + inEnglish,
			"isso já foi decidido sobre d1, por eva (" + inPortuguese + ")",
		},
		"the instance is failed already": {"the instance is failed already", `o estado da instância já é "falhou"`},
		"failed: it is READY since " + written: {
			"failed: it is READY since " + written, "não deu para fazer: it is READY since " + written,
		},
		"the pump is FAILED": {"the pump is FAILED", "the pump is FAILED"},
	} {
		for i, l := range []*language{en, pt} {
			if got := l.reason(text); got != want[i] {
				t.Errorf("%s: %q is %q, want %q", l.code, text, got, want[i])
			}
		}
	}
}

// Every row can be reached, and says in Portuguese all that is in the English one.
func TestEveryReasonCanBeReached(t *testing.T) {
	rows := languages()[1].reasons
	if len(rows) < 70 {
		t.Fatalf("only %d rows", len(rows))
	}
	b, err := texts.ReadFile("strings/reasons.pt-BR.txt")
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		english, other, ok := strings.Cut(line, " => ")
		english = strings.TrimPrefix(english, "whole: ")
		number := func(text string) (out []string) {
			for _, m := range blank.FindAllStringSubmatch(text, -1) {
				out = append(out, m[1])
			}
			slices.Sort(out)
			return out
		}
		if a, b := number(english), number(other); !ok || len(b) > len(a) || strings.Contains(other, "!}") {
			t.Errorf("%s: blanks %v and %v", line, a, b)
		}
		sample := blank.ReplaceAllString(english, "x${1}x")
		first := slices.IndexFunc(rows, func(r reasonRow) bool { return r.form().MatchString(sample) })
		if first != i {
			t.Errorf("%q is taken for row %d, and is row %d", sample, first, i)
		}
		i++
	}
}

// Why partners cannot be asked is in words of the page, with the moment as a clock.
func TestWhyPartnersCannotBeAskedIsSaid(t *testing.T) {
	text := "this node takes no part in instance 3f9a, and nobody can be asked now that is known to: " +
		"desk (gone for good), hut (away as announced until about 2026-11-30T18:00:00Z), " +
		"van (not heard of since 2026-11-30T15:05:38Z), yard (does not answer)"
	for i, want := range []string{"van (not heard of since", "van (sem notícia desde"} {
		got := languages()[i].reason(text)
		if !strings.Contains(got, want) || strings.Contains(got, "T15:05") || strings.Contains(got, "T18:00") ||
			i == 1 && strings.Contains(got, "does not") {
			t.Error(got)
		}
	}
}
