# ruff: noqa: RUF001 - letters of other languages
"""Binding words of languages other than English, and phrases of English that look binding and are not.

``FOREIGN`` is the documented table: by language, patterns of a prohibition, a duty, a limit, a decision, a goal, a
preference, a value, a commitment, and of words that revise. A sentence with two or more of the commonest English words is
not read with it.
"""

from __future__ import annotations

import functools
import re
from types import MappingProxyType

# By language: rule (never), rule (must), limit, decision, goal, preference, value, commitment, revising words.
FOREIGN_TEXT = MappingProxyType({
    "German": (
        r"\b(?:niemals|nie (?!wieder so|gedacht|gemocht|geglaubt)|auf keinen fall|unter keinen umst[äa]nden|d[üu]rfen? (?:\w+ ){0,6}?(?:nicht|kein\w*|nur)|darf(?:st)? (?:\w+ ){0,6}?(?:nicht|kein\w*|nur|nie)|verboten|nicht erlaubt|tabu|nicht ohne|(?:bitte |^)(?:keine?n? )\w+|^(?:bitte )?\w+(?:e|en)? (?:sie |bitte )?(?:\w+ ){0,5}?nicht(?: \w+){0,4}[!.]?$|nur mit (?:meiner|unserer|ausdr)|nur nach|^(?:bitte )?\w+(?:e|en)? (?:\w+ ){0,3}?(?:nichts|niemand\w*)\b|(?:nichts|niemand\w*) (?:\w+ ){1,6}?(?:bevor|ohne)|ohne (?:\w+ ){1,6}?(?:kein\w*|nichts|niemand\w*|nicht)|(?:nichts|niemand\w*|kein\w*) (?:[\w,]+ ){1,6}?(?:bevor|ohne|bis)|verl[äa](?:sst|ssen) (?:\w+ ){0,4}?nicht|(?:geh|komm)(?:t|en) (?:\w+ ){0,4}?nicht (?:raus|rein|an|weiter|nach)|nur (?:\w+ ){1,4}?(?:darf|d[üu]rfen|hat|haben|kann|k[öo]nnen))",
        r"\b(?:muss|m[üu]ssen|immer (?:erst|nur|zuerst|die|den|das|mit|in|auf|vor|\w+en)|stets|unbedingt|ausschlie[ßs]+lich|grunds[äa]tzlich|verpflichtend|achte darauf|denk daran|frag(?:e|en)? (?:mich|sie|uns|vorher|immer))\b",
        r"\b(?:h[öo]chstens|maximal|mindestens|nicht mehr als|nicht l[äa]nger als|limit|obergrenze|budget|bis zu \d|unter \d)\b",
        r"\b(?:wir haben (?:uns )?(?:\w+ ){0,6}?(?:entschieden|beschlossen|geeinigt)|ich habe mich (?:\w+ ){0,6}?entschieden|entscheidung:|wir nehmen|wir nutzen|wir verwenden|wir bleiben bei|lass uns)\b",
        r"\b(?:das ziel|mein ziel|unser ziel|ziel ist|ich m[öo]chte bis|(?:ich|wir) (?:will|wollen|m[öo]chten?) (?:\w+ ){0,8}?(?:bis|vor))\b",
        r"\b(?:ich bevorzuge|mir ist lieber|lieber|ich mag|ich bin (?:vegetarier\w*|veganer\w*|allergisch)|ich esse kein\w*|ich hasse|nenn(?:e|t|en)? (?:mich|uns)|(?:ich )?vertrage? (?:\w+ ){0,2}?(?:kein\w*|nicht)|sprich mich|spr(?:ich|echen) (?:sie )?(?:bitte )?mich|duz\w*|siez\w*|sag (?:bitte )?(?:du|sie) zu mir|allerg\w+)\b",
        r"\b(?:mein|meine|unser|unsere|der|die|das) (?:[\w-]+ ){1,5}?(?:ist|sind|lautet|beginnt|wurde|hei[ßs]t|liegt|liegen|betr[äa]gt|kostet|endet|l[äa]uft|f[äa]hrt|geht|kommt|findet|hat sich ge[äa]ndert|steht|dauert|f[äa]llt|startet|zieht)\b",
        r"\b(?:ich (?:werde|verspreche)|versprochen|zugesagt|ich (?:schick|bring|meld|liefer|geb|mach|ruf|schreib|überweis)\w* (?:\w+ ){0,8}?(?:bis|am|morgen|heute|noch))\b",
        r"\b(?:doch|statt(?:dessen)?|ab (?:jetzt|sofort|heute)|nicht mehr|k[üu]nftig|korrektur|eigentlich|ge[äa]ndert|verschoben|sondern|neu\w*|von nun an|jetzt)\b",
    ),
    "French": (
        r"\b(?:(?:ne|n['\u2019])\s?\w+ (?:\w+ )?(?:jamais|pas|plus|que)|ne jamais|jamais|ne pas|interdit\w*|en aucun cas|surtout pas|pas de \w+ sans|^pas d(?:e |['\u2019])|il ne faut|(?:ne|n['\u2019])\s?\w+ (?:\w+ )?(?:rien|personne|aucun\w*)|rien (?:\w+ ){0,3}?(?:sans|avant)|(?:seul(?:e|s|es)?|il n['\u2019]y a que) (?:[\w.'\u2019-]+ ){1,5}?(?:a le droit|ont le droit|peut|peuvent|doit|doivent|qui)|sans (?:mon|ma|notre|l['\u2019]) ?(?:accord|aval|feu vert|permission|autorisation)|pas question)\b",
        r"\b(?:doi(?:t|s|vent)|devez|toujours|il faut|obligatoire\w*|obligatoirement|uniquement|seulement|exclusivement|demande(?:z)?[- ]moi|veillez)\b",
        r"\b(?:au maximum|maximum|au plus|au moins|pas plus de|limite|plafond|budget|moins de \d|pas au[- ]del[àa]|maxi\b|jusqu['\u2019][àa] \d)\b",
        r"\b(?:nous avons d[ée]cid[ée]|on a d[ée]cid[ée]|j['\u2019]ai d[ée]cid[ée]|d[ée]cision ?:|on (?:part|reste) sur|on utilise|on prend|nous prenons|nous utilisons|nous utiliserons|prenons|on (?:y va|part|va) (?:avec|pour)|j['\u2019]ai (?:choisi|opt[ée])|nous avons (?:choisi|opt[ée])|on a (?:choisi|opt[ée]))",
        r"\b(?:l['\u2019]objectif|mon objectif|notre objectif|le but|mon but|(?:je (?:veux|voudrais|compte|souhaite)|on (?:veut|voudrait)|nous voulons) (?:[\w'\u2019-]+ ){0,10}?(?:avant|d['\u2019]ici))\b",
        r"\b(?:je pr[ée]f[èe]re|je suis (?:v[ée]g[ée]tari\w+|v[ée]gan\w*|allergique)|je n['\u2019]aime pas|j['\u2019]aime mieux|je ne mange pas|je d[ée]teste|plut[ôo]t|(?:tutoie|vouvoie|appelle|tutoyez|vouvoyez|appelez)[- ]moi|je ne supporte pas|allergi\w+)",
        r"\b(?:(?:mon|ma|mes|notre|nos|le|la|les) |l['\u2019])(?:[\w'\u2019-]+ ){1,7}?(?:est|sont|sera|commence|passe(?:nt|ra)?|a chang[ée]|co[ûu]te|finit|d[ée]marre|part|arrive|a lieu|se termine|s['\u2019][ée]l[èe]ve)\b",
        r"\b(?:je (?:promets|m['\u2019]engage)|nous avons promis|je (?:t['\u2019]|vous |te |l['\u2019]|le |la |les |lui )*(?:enverrai|envoie|rends|rendrai|ferai|apporte\w*|pr[ée]viens|rappelle\w*|transmets|d[ée]pose\w*))",
        r"\b(?:finalement|plut[ôo]t|au lieu de|d[ée]sormais|dor[ée]navant|ne \w+ plus|[àa] partir de maintenant|en fait|correction|non,|chang\w+|report[ée]\w*|nouve\w+|maintenant)",
    ),
    "Spanish": (
        r"\b(?:nunca|jam[áa]s|prohibid[oa]s?|bajo ning[úu]n concepto|en ning[úu]n caso|no (?:se )?(?:debe|debes|deben|puede|puedes|pueden|uses|usar|borres|env[íi]es|compartas|hagas|toques|mandes|llames|pagues|des|olvides|\w+(?:es|as)\b)|sin mi (?:permiso|aprobaci[óo]n)|n(?:o) (?:sale|salen|entra|entran|va|van|pertenece\w*|hagáis|publi\w+|toqu\w+|digas|cont\w+)|nada (?:\w+ ){0,4}?(?:sin|antes)|(?:solo|s[óo]lo|solamente|[úu]nicamente) (?:[\w.]+ ){1,5}?(?:puede[ns]?|tiene[ns]? (?:permiso|derecho|acceso)|firma|decide)|sin (?:mi|el|nuestro|su) (?:visto bueno|permiso|aprobaci[óo]n|ok|consentimiento)|nadie (?:\w+ ){0,4}?(?:puede|debe|toca|sabe|excepto|salvo))",
        r"\b(?:debe[ns]?|tiene[ns]? que|hay que|siempre|obligatori[oa]|solo (?:con|si|en|usa|se)|s[óo]lo|solamente|[úu]nicamente|preg[úu]ntame|aseg[úu]rate)\b",
        r"\b(?:como m[áa]ximo|m[áa]ximo|como mucho|al menos|no m[áa]s de|l[íi]mite|tope|presupuesto|menos de \d)\b",
        r"\b(?:hemos decidido|decidimos|he decidido|decisi[óo]n:|vamos a usar|usaremos|nos quedamos con|vamos con|(?:cogemos|tomamos|elegimos|hemos elegido|iremos|nos vamos|vamos en|compramos|al final vamos))",
        r"\b(?:el objetivo|mi objetivo|nuestro objetivo|la meta|mi meta|(?:quiero|queremos|quisiera|me gustar[íi]a) (?:\w+ ){0,10}?(?:antes de|para|hasta))\b",
        r"\b(?:prefiero|soy (?:vegetarian[oa]|vegan[oa]|al[ée]rgic[oa])|no me gusta\w*|odio|no como|(?:ll[áa]mame|tut[ée]ame|tr[áa]tame|h[áa]blame) ?\w*|no soporto|al[ée]rgic[oa]s?|me gusta(?:n)? m[áa]s|intolerante)\b",
        r"\b(?:mi|mis|nuestr[oa]s?|el|la|los|las) (?:[\w-]+ ){1,7}?(?:es|son|ser[áa]|empieza|est[áa]|se (?:pasa|mueve|aplaza|adelanta|cambia)|pasa|ha cambiado|cambi[óo]|cuesta|acaba|termina|sale|vale|se queda)\b",
        r"\b(?:prometo|me comprometo|prometimos|(?:te|os|le|les) (?:lo |la |los |las )?(?:mando|env[íi]o|paso|aviso|enviar[ée]|mandar[ée]|pasar[ée]|llamo|traigo))\b",
        r"\b(?:mejor|en vez de|en lugar de|a partir de ahora|ya no|de ahora en adelante|en realidad|correcci[óo]n|cambi\w+|sino|ahora|nuev[oa])\b",
    ),
    "Portuguese": (
        r"\b(?:nunca|jamais|proibid[oa]s?|em hip[óo]tese alguma|de jeito nenhum|n[ãa]o (?:pode|podem|deve|devem|use|usar|apague|envie|compartilhe|fa[çc]a|mexa|mande|ligue|pague|d[êe]|esque[çc]a)|sem (?:a )?minha (?:permiss[ãa]o|aprova[çc][ãa]o)|(?:s[óo]|somente|apenas) (?:[\w.]+ ){1,5}?(?:pode[m]?|tem (?:acesso|permiss[ãa]o)|assina|decide)|n[ãa]o (?:sai|saem|entra|entram|vai|v[ãa]o|publi\w+|conte|fale|toque|diga)|nada (?:\w+ ){0,4}?(?:sem|antes)|sem (?:o )?meu (?:ok|aval|consentimento)|ningu[ée]m (?:\w+ ){0,4}?(?:pode|deve|toca|sabe))",
        r"\b(?:deve[m]?|tem que|t[êe]m que|[ée] preciso|sempre|obrigat[óo]ri[oa]|somente|apenas|s[óo] (?:com|se|use)|pergunte|certifique-se)\b",
        r"\b(?:no m[áa]ximo|m[áa]ximo|pelo menos|n[ãa]o mais (?:de|que)|limite|teto|or[çc]amento|menos de \d|n[ãa]o (?:quero )?mais (?:do )?que|at[ée] \d|no m[íi]nimo)\b",
        r"\b(?:decidimos|eu decidi|resolvemos|decis[ãa]o:|vamos usar|vamos com|usaremos|ficamos com|(?:vamos (?:no|na|de|com)|escolhemos|optamos|ficou decidido|pegamos|compr[áa]mos))",
        r"\b(?:o objetivo|meu objetivo|nosso objetivo|a meta|minha meta|(?:quero|queremos|gostaria de|pretendo) (?:\w+ ){1,10}?(?:antes d\w+|at[ée]))\b",
        r"\b(?:prefiro|sou (?:vegetarian[oa]|vegan[oa]|al[ée]rgic[oa])|n[ãa]o gosto|odeio|n[ãa]o como|al[ée]rgic[oa]s?|me chame|chama-me|trata-me|me trate|n[ãa]o suporto|intolerante|(?:me|se) chama de|fala comigo|sem formalidade|pode me chamar)\b",
        r"\b(?:meus?|minhas?|noss[oa]s?|o|a|os|as) (?:[\w-]+ ){1,7}?(?:[ée]|s[ãa]o|ser[áa]|come[çc]a|fica|passou|passa|mudou|foi (?:adiad|antecipad|transferid)\w+|custa|termina|acaba|sai)\b",
        r"\b(?:prometo|me comprometo|prometemos|(?:te|lhe|vos) (?:passo|mando|envio|entrego|aviso)|(?:passo|mando|envio|entrego|aviso)[- ](?:te|lhe)|pode contar)\b",
        r"\b(?:em vez de|na verdade|a partir de agora|de agora em diante|n[ãa]o mais|corre[çc][ãa]o|mud\w+|melhor|agora|nov[oa])\b",
    ),
    "Italian": (
        r"\b(?:mai|non (?:si )?(?:deve|devi|devono|pu[òo]|puoi|possono|usare|usate|cancellare|inviare|condividere|toccare|mandare|pagare|dare|\w+(?:are|ere|ire))|vietat[oa]|proibit[oa]|in nessun caso|senza (?:la mia|il mio)|(?:solo|soltanto|unicamente) (?:[\w.']+ ){1,5}?(?:pu[òo]|possono|ha (?:il diritto|accesso)|firma|decide)|non (?:esce|escono|va|vanno|entra|entrano)|(?:niente|nulla|nessuno) (?:\w+ ){0,4}?(?:senza|prima|pu[òo])|senza (?:il )?(?:mio|nostro) (?:consenso|ok|permesso))\b",
        r"\b(?:deve|devono|devi|bisogna|sempre|obbligatori[oa]|solo (?:con|se|dopo)|soltanto|esclusivamente|chiedimi|assicurati)\b",
        r"\b(?:al massimo|massimo|almeno|non pi[ùu] di|limite|tetto|budget|meno di \d)\b",
        r"\b(?:abbiamo deciso|ho deciso|decisione:|usiamo|useremo|andiamo con|restiamo con|prendiamo|abbiamo scelto|ho scelto|si va con|compriamo)\b",
        r"\b(?:l['\u2019]obiettivo|il mio obiettivo|il nostro obiettivo|lo scopo|(?:voglio|vogliamo|vorrei|conto di|punto a) (?:\w+ ){0,10}?(?:entro|prima d\w+))\b",
        r"\b(?:preferisco|sono (?:vegetarian[oa]|vegan[oa]|allergic[oa])|non mi piac\w+|odio|non mangio|(?:dammi|diamoci) del (?:tu|lei)|chiamami|non sopporto|allergic[oahei]+|intollerante)\b",
        r"\b(?:(?:mio|mia|miei|nostr[oa]|il|la|lo|i|le) |l['\u2019])(?:[\w'\u2019-]+ ){1,7}?(?:[èe]|sono|sar[àa]|inizia|passa|costa|finisce|parte|arriva|slitta)\b",
        r"\b(?:prometto|mi impegno|abbiamo promesso|(?:ti|vi|le|gli) (?:lo |la |li |le )?(?:mando|invio|porto|faccio avere|spedisco|mander[òo]|invier[òo]|giro))\b",
        r"\b(?:invece|al posto di|d['\u2019]ora in poi|da ora in poi|non pi[ùu]|anzi|in realt[àa]|correzione|cambi\w+|spostat[oa]|bens[ìi]|adesso|ora|nuov[oa])\b",
    ),
    "Dutch": (
        r"\b(?:nooit|mag (?:\w+ ){0,6}?(?:niet|geen|nooit|alleen)|mogen (?:\w+ ){0,6}?(?:niet|geen|alleen)|verboden|in geen geval|niet zonder|^(?:gebruik|stuur|verwijder|deel|doe|bel|betaal|raak) (?:\w+ ){0,6}?(?:niet|geen)|(?:niets|niemand|geen \w+) (?:\w+ ){0,4}?(?:zonder|voordat|totdat|tot)|alleen (?:[\w.]+ ){1,4}?(?:mag|mogen|kan|kunnen|heeft|hebben)|(?:gaat|gaan|komt|komen|hoort|horen|verlaat|verlaten) (?:\w+ ){0,5}?niet\b|zonder (?:mijn|onze|haar|zijn) (?:akkoord|toestemming|ok\w*|goedkeuring))\b",
        r"\b(?:moet(?:en)?|altijd|verplicht|uitsluitend|alleen (?:met|als|na)|vraag (?:het )?(?:mij|me|eerst)|zorg (?:ervoor )?dat)\b",
        r"\b(?:maximaal|hooguit|minstens|minimaal|niet meer dan|limiet|budget|onder de \d)\b",
        r"\b(?:we hebben (?:\w+ ){0,6}?(?:besloten|gekozen|afgesproken)|ik heb (?:\w+ ){0,4}?besloten|besluit:|we gebruiken|we gaan voor|laten we|we nemen|we gaan (?:met|naar|voor|op)|ik heb gekozen|we kiezen)\b",
        r"\b(?:het doel|mijn doel|ons doel|doel is|(?:ik|we) (?:wil|willen) (?:\w+ ){0,8}?(?:voor|tegen|v[óo]{2}r))\b",
        r"\b(?:ik heb liever|liever|ik ben (?:vegetari[ëe]r|veganist|allergisch)|ik hou niet van|ik eet geen|allergisch|noem me|zeg maar (?:je|u)|spreek me|ik verdraag geen|ik kan niet tegen)\b",
        r"\b(?:mijn|onze?|de|het) (?:[\w-]+ ){1,4}?(?:is|zijn|wordt|begint|kost|eindigt|gaat|vertrekt|valt|staat|ligt|verhuist)\b",
        r"\b(?:ik beloof|beloofd|toegezegd|ik (?:stuur|breng|geef|lever|bel|mail) (?:\w+ ){0,8}?(?:voor|op|morgen|vandaag|uiterlijk|tegen))\b",
        r"\b(?:toch|in plaats van|vanaf nu|niet meer|voortaan|eigenlijk|correctie|verplaatst|gewijzigd|maar|nieuwe?|nu)\b",
    ),
    "Polish": (
        r"\b(?:nigdy|nie wolno|zabronion\w*|pod [żz]adnym pozorem|nie mo[żz]na|nie (?:u[żz]ywaj|usuwaj|wysy[łl]aj|udost[ęe]pniaj|r[óo]b|ruszaj|dzwo[ńn]|p[łl]a[ćc])|bez mojej zgody|tylko (?:\w+ ){1,4}?(?:mo[żz]e|mog[ąa]|ma (?:prawo|dost[ęe]p)|wolno)|nie (?:wychodz\w+|opuszcz\w+|wolno|publikuj\w*|m[óo]w\w*|dotykaj\w*|ruszaj\w*|zmieniaj\w*)|(?:niczego|nic|nikt|nikomu) (?:\w+ ){0,4}?(?:bez|dop[óo]ki|nie)|bez (?:mojej|naszej|jej|jego) (?:zgody|wiedzy|akceptacji)|(?:wy[łl][ąa]cznie|jedynie) (?:\w+ ){1,4}?(?:mo[żz]e|mog[ąa])|mo[żz]e (?:\w+ ){0,4}?(?:wy[łl][ąa]cznie|tylko|jedynie))\b",
        r"\b(?:musi(?:sz|my|cie)?|musz[ąa]|zawsze|nale[żz]y|trzeba|obowi[ąa]zkowo|tylko (?:z|za|po|je[śs]li)|wy[łl][ąa]cznie|pytaj mnie|upewnij si[ęe])\b",
        r"\b(?:maksymalnie|najwy[żz]ej|co najmniej|nie wi[ęe]cej ni[żz]|limit|bud[żz]et|poni[żz]ej \d|nie d[łl]u[żz]ej|maks\w*|do \d)\b",
        r"\b(?:zdecydowali[śs]my|postanowili[śs]my|zdecydowa[łl][ae]m|decyzja:|u[żz]ywamy|b[ęe]dziemy u[żz]ywa[ćc]|zosta[ńn]my przy|jedziemy|bierzemy|wybieramy|wybrali[śs]my|stawiamy na|idziemy z)\b",
        r"\b(?:celem|m[óo]j cel|nasz cel|cel to|(?:chc[ęe]|chcemy|chcia[łl]\w+bym|planuj[ęe]) (?:\w+ ){0,8}?(?:do|przed))\b",
        r"\b(?:wol[ęe]|jestem (?:wegetariani\w+|wegani\w+|uczulon\w+)|nie lubi[ęe]|nie jem|nienawidz[ęe]|uczulen\w+|alergi\w+|m[óo]w (?:mi|do mnie)|zwracaj si[ęe])\b",
        r"\b(?:(?:m[óo]j|moja|moje|nasz\w*|termin\w*|spotkanie|adres|numer|wizyt\w+|lot|poci[ąa]g|zebranie) (?:[\w-]+ ){0,4}?(?:to|jest|wynosi|b[ęe]dzie|zmieni[łl]\w*|kosztuje|ko[ńn]czy|odje[żz]d[żz]a|zaczyna)|przenie(?:sion\w+|[śs]li)|przesun(?:i[ęe]t\w+|[ęe]li)|prze[łl]o[żz]yli)\b",
        r"\b(?:obiecuj[ęe]|zobowi[ąa]zuj[ęe]|obiecali[śs]my|(?:wy[śs]l[ęe]|prze[śs]l[ęe]|zrobi[ęe]|oddam|dam zna[ćc]|podrzuc[ęe]|przygotuj[ęe]|zadzwoni[ęe]))\b",
        r"\b(?:jednak|zamiast|od teraz|ju[żz] nie|w[łl]a[śs]ciwie|korekta|zmie[ńn]\w*|przeniesion\w*|lecz|now[yae]|teraz)\b",
    ),
    "Russian": (
        r"(?:никогда|нельзя|запрещ\w+|ни в коем случае|ни при каких|не (?:используй|удаляй|отправляй|делай|трогай|звони|плати|должн\w+|надо|нужно|смей|публикуй|пиши)\w*|без моего|только (?:\S+ ){1,4}?(?:мож\w+|вправе|имее\w+ право|подписыва\w+|реша\w+)|не (?:выход\w+|покида\w+|уход\w+|переда\w+|публикуй\w*|говори\w*|меняй\w*|присылай\w*|показывай\w*)|(?:ничего|никому|никто) (?:\S+ ){0,4}?(?:без|пока|не)|без (?:моего|моей|нашего|его|её) (?:согласия|разрешения|одобрения|ведома|подписи)|согласовыва\w+ (?:\S+ ){0,3}?(?:только|лишь)|(?:только|лишь) (?:с разрешения|через))",
        r"(?:долж(?:ен|на|но|ны)|всегда|обязательно|обязан\w*|только (?:с|после|если|через)|исключительно|спрашивай|спроси|следует|необходимо|убедись)",
        r"(?:максимум|не более|не больше|не менее|минимум|лимит|бюджет|до \d|не (?:длиннее|дольше|дороже|выше|позже|раньше|свыше)|в пределах|самое большее|не превыша\w+)",
        r"(?:мы решили|я решил\w?|решено|решение:|используем|будем использовать|остановились на|давай(?:те)? (?:использ|возьм|остан)|едем|ед[её]м|бер[её]м|летим|выбрали|выбираем|договорились|решили|не (?:продаём|покупаем|едем))",
        r"(?:цель|моя цель|наша цель|задача в том|(?:хочу|хотим|планирую|мечтаю|хотел\w? бы) (?:\S+ ){0,8}?(?:к|до|в этом))",
        r"(?:предпочитаю|я (?:вегетариан\w+|веган\w*)|у меня аллергия|не люблю|не ем|ненавижу|мне больше нравится|называй\w*|зови\w* меня|обращайся|обращайтесь|давай на ты|не переношу|лучше (?:списк|коротк)\w+|аллерги\w+)",
        r"(?:(?:мой|моя|моё|мое|мои|наш\w*|срок|встреч\w+|созвон|при[её]м|поезд|адрес|номер|бюджет|цена|дедлайн|занятие) (?:\S+ ){0,4}?(?:\u2014|-|это|теперь|будет|\d|измени\w+|составля\w+|переехал\w*|заканчивается|\S*тысяч\w*)|(?:код|пароль|рейс|вылет|размер|почта|телефон|квартира|версия)\w* (?:\S+ ){0,4}?\S*\d|перенес\w+|перенос\w+|(?:с|пере)двинули)",
        r"(?:обещаю|обязуюсь|мы обещали|(?:пришлю|отправлю|сделаю|верну|позвоню|подготовлю|скину|передам|принесу))",
        r"(?:вместо|теперь|отныне|больше не|на самом деле|исправл\w+|передума\w+|перенес\w+|измени\w+|лучше|нет,|а не|нов\w+)",
    ),
    "Chinese": (
        r"(?:绝不|绝对不|决不|不要|别(?!的|人|墅|说)|不得|禁止|严禁|切勿|请勿|不许|不允许|不能|不可以|未经.{0,8}(?:同意|批准|许可)|只有.{1,12}(?:可以|能|才)|不(?:得|许|可以|能|要)?(?:带出|外传|泄露|离开)|没有.{1,8}(?:同意|批准|许可|允许))",
        r"(?:必须|务必|一定要|应当|总是|始终|只能|只有|仅限|永远|要先|先问我|都要|只用)",
        r"(?:最多|不超过|至少|上限|预算|以内|不少于|限制|不要超过|别超过|顶多|不得超过|之内)",
        r"(?:我们决定|决定了|我决定|决定[:：用采]|就用|采用|我们用|选定|我们(?:坐|去|选|要|定|买|走)|(?:决定|确定|定)(?:了|下来|好)|选了|我选|商量好|说好了|就(?:去|上|选|定|买|租))",
        r"(?:目标是|我的目标|我们的目标|目的是|(?:我|我们)(?:想|要|希望|打算)在?.{1,12}(?:之前|以前|前|内|底))",
        r"(?:我更喜欢|更喜欢|我不喜欢|我吃素|素食|过敏|我不吃|偏好|我喜欢用|叫我|称呼我|不能吃|喜欢.{1,12}(?:胜过|多过)|偏爱|宁愿|讨厌)",
        r"(?:(?:我的|我们的|截止日期|地址|电话|航班|预算).{0,12}(?:是|为|在)|(?:会议|开会|面试|约|时间|日期|号码|电话|地址|航班|火车|考试|截止|预算|价格|版本|密码|套餐|门牌|尺码|账号|房租|工资).{0,12}(?:改|换|变|是|推迟|提前|尾号|到|\d)|每(?:月|年|周|天)\d)",
        r"(?:我保证|我承诺|我会在|我答应|我答应|我会.{0,12}(?:之前|以前|给你|寄|交|还)|我?一定(?:会|把|给|在)|(?:之前|以前)我(?:会|把|给)|我(?:会|来)把)",
        r"(?:改成|改为|改到|不再|从现在起|从今以后|而不是|其实|更正|换成|取消之前|现在|以后)",
    ),
    "Japanese": (
        r"(?:決して|絶対に.{0,30}(?:ない|ません|な(?:いで|ければ)|禁止)|ないでください|しないで|てはいけ|ては(?:なら|ダメ|だめ)|禁止|厳禁|てはいけません|許可なく|承認なし|だけ(?:です|が(?:サイン|決め|触|見|入|承認|使))|の?許可(?:が|を|なく|なし)|持ち出し|勝手に)",
        r"(?:必ず|なければなら|なければいけ|ねばなら|べき|常に|いつも.{0,20}(?:して|てください)|のみ|だけ(?:に|で|を)|してください|で(?:答えて|返事して|書いて|お願い)|呼んで)",
        r"(?:最大|以内|以下|まで(?:です|に)|以上|上限|予算|少なくとも|超えない)",
        r"(?:に決め|決定|にしましょう|ことにし|を使います|を採用|でいきましょう)",
        r"(?:目標は|目的は|ゴールは|までに.{1,30}(?:たい|つもり)|目指し)",
        r"(?:の方が好き|のほうが好き|が好き|が嫌い|が苦手|アレルギー|ベジタリアン|好みは)",
        r"(?:(?:私の|うちの).{0,12}は|(?:会議|予算|締め?切り?|番号|住所|便|電車|予約|集合|価格|バージョン|開始|日程|時間).{0,16}(?:は|です|になりました|に変わ|変わりました|変更|から|なった|延期))",
        r"(?:約束します|お約束|必ずやります|(?:送り|お送りし|渡し|お渡しし|連絡し|提出し|返し)ます)",
        r"(?:やっぱり|ではなく|じゃなくて|に変更|これからは|今後|もう.{0,12}ない|訂正|代わりに|新しい|今は)",
    ),
    "Korean": (
        r"(?:절대|하지 ?마|지 ?마세요|지 ?말|금지|안 ?됩니다|안 ?돼|승인 ?없이|허락 ?없이|해서는 안|만 .{0,10}(?:수 있|가능|허용)|없이(?:는)? .{0,14}(?:마|안|말))",
        r"(?:반드시|꼭|해야 ?(?:합니다|해|한다|돼|됩니다)|항상|언제나|오직|에만|만 사용|먼저 물어)",
        r"(?:최대|이내|이하|이상|한도|예산|적어도|넘지|까지만|만 (?:써|내|해)|넘기지)",
        r"(?:결정했|하기로 했|로 결정|로 갑시다|로 하자|사용하기로|쓰기로|기로 ?(?:했|결정|정했)|로 정했|선택했)",
        r"(?:목표는|목적은|제 목표|우리 목표|까지 .{1,30}(?:싶|할 거|하려고)|목표(?:야|예요|입니다|다))",
        r"(?:선호|더 좋아|싫어|알레르기|채식|안 먹|못 먹|라고 불러|반말|존댓말|존대|못 먹|좋아해요?|좋아합)",
        r"(?:(?:제|저의|내|우리) ?\S{1,10}(?:은|는) .{0,20}(?:입니다|이에요|예요|이야|다\.?$)|(?:회의|예산|마감|번호|주소|비행기|기차|예약|약속|가격|버전|시험|시간)\S* ?.{0,16}(?:변경|바뀌|바뀐|옮겨|미뤄|연기|입니다|이에요|예요|로)|(?:비밀번호|코드|면접|생일|사이즈|계좌)\S* ?.{0,16}\d)",
        r"(?:약속|하겠습니다|할게요|(?:보낼|드릴|줄|보내줄|보내드릴|갖다줄|끝낼)게|보내드리겠)",
        r"(?:아니라|대신|이제부터|앞으로는|더 ?이상|사실은|정정|변경|바꿔|바뀌|새로운|이제는?|말고|바뀌\S*|바뀐)",
    ),
    "Arabic": (
        r"(?:أبد[اًا]+|لا (?:ت\w+|يجوز|يمكن|يُسمح|يسمح)|ممنوع|يُمنع|يمنع|يحظر|بدون موافقت|دون إذن|إياك|فقط (?:\S+ ){1,4}?(?:يمكن\S*|له|لها|يحق)|لا (?:ي\w+|أحد)|إلا بموافقت|بدون (?:إذن|علم|موافق)\S*|دون (?:موافق|إذن|علم)\S*)",
        r"(?:يجب|دائم[اًا]+|لا بد|فقط|حصر[اًا]+|ينبغي|اسألني|تأكد)",
        r"(?:كحد أقصى|الحد الأقصى|لا يزيد|على الأقل|الميزانية|ميزانيت|لا (?:ي|ت)تجاوز|أقصى|في حدود)",
        r"(?:قررنا|قررت|القرار|سنستخدم|اتفقنا|لنستخدم)",
        r"(?:الهدف|هدفي|هدفنا|(?:أريد|نريد|أنوي|أطمح) (?:\S+ ){0,8}?(?:قبل|بحلول|خلال))",
        r"(?:أفضل|أفضّل|لا أحب|أكره|نباتي|حساسية|لا آكل|نادني|ناديني|خاطبني|خاطبيني)",
        r"(?:(?:موعد|عنوان|رقم|ميزانيت|اجتماع|رحلت)\S* ?.{0,20}(?:هو|هي|في|إلى|\d)|(?:الاجتماع|الموعد|الرقم|العنوان|السعر|الرحلة|القطار|الامتحان)\S* ?(?:\S+ ){0,3}?(?:تأجل|تغير|أصبح|انتقل|صار|\d)\S*)",
        r"(?:أعدك|وعد|أتعهد|سأ\w+|سنرسل|سوف أ\w+)",
        r"(?:بدل[اًا]* من|من الآن|لم يعد|في الواقع|تصحيح|تغيير|غير[تن]|الجديد|الآن|بل)",
    ),
    "Hindi": (
        r"(?:कभी (?:भी )?(?:\S+ ){0,8}?(?:नहीं|मत|न )|मत (?:कर|भेज|हटा|दे|बता)|\S+ मत\b|नहीं कर(?:ना|ें)|मना है|वर्जित|बिना (?:मेरी|पूछे|अनुमति)|न करें|(?:केवल|सिर्फ़?|बस) (?:\S+ ){1,4}?(?:सकत\S+|कर सक\S+)|(?:के|मेरे|हमारे) बिना|नहीं (?:जाना|होना|देना|करना|बताना|भेजना)|मत\b)",
        r"(?:हमेशा|ज़रूर|जरूर|चाहिए|अनिवार्य|केवल|सिर्फ|सिर्फ़|पहले मुझसे)",
        r"(?:अधिकतम|ज़्यादा से ज़्यादा|से ज्यादा नहीं|से अधिक नहीं|कम से कम|सीमा|बजट)",
        r"(?:हमने (?:\S+ ){0,6}?(?:तय|फैसला|निर्णय)|मैंने (?:\S+ ){0,6}?(?:तय|फैसला)|तय हुआ|निर्णय:)",
        r"(?:लक्ष्य|उद्देश्य|(?:\S+ ){0,8}?तक (?:\S+ ){0,8}?(?:चाहता|चाहती|चाहते))",
        r"(?:मुझे (?:\S+ ){0,4}?(?:पसंद|एलर्जी)|शाकाहारी|मैं (?:\S+ ){0,3}?नहीं खा|(?:कहकर|कह कर|नाम से) (?:बुला|पुकार)\S*|बुलाओ|बुलाइए|आप कहें)",
        r"(?:मेरा|मेरी|मेरे|हमारा|हमारी|बजट|मीटिंग|बैठक|पता|परीक्षा|नंबर|फ़?ोन|ट्रेन|उड़ान|किराया|कीमत|समय) (?:\S+ ){0,6}?(?:है|हैं|होगी|होगा|हो गया|हो गई|बदल\S*|टल\S*)",
        r"(?:वादा|वचन|\S+(?:ूँगा|ूंगा|ूँगी|ूंगी|ेंगे))",
        r"(?:के बजाय|की जगह|अब से|अब नहीं|असल में|सुधार|बदल\S*|नया|नई|अब)",
    ),
    "Turkish": (
        r"\b(?:asla|sak[ıi]n|yasak\w*|hi[çc]bir (?:zaman|ko[şs]ulda|[şs]ekilde)|kesinlikle (?:\w+ ){0,6}?\w+m[ae]\w*|onay[ıi]m olmadan|izin(?:siz)?(?: almadan)?|\w+(?:ma|me)y[ıi]n(?:[ıi]z)?|(?:silme|g[öo]nderme|payla[şs]ma|kullanma|arama|yapma|[öo]deme)|(?:sadece|yaln[ıi]z(?:ca)?) (?:\w+ ){1,4}?(?:\w+[ae]bilir\w*|yetkili)|\w{2,}m[ae]z(?:lar|ler)?(?=[.!]?$)|(?:onay[ıi]m|iznim|haberim) (?:olmadan|almadan)|hi[çc](?:bir| kimse)\b|sormadan|haber vermeden|\w+(?:ma|me)\b(?=[.!]?$)|(?:yetkisi|hakk[ıi]) (?:sadece|yaln[ıi]z\w*))\b",
        r"\b(?:mutlaka|her zaman|daima|zorunlu\w*|gerek(?:ir|iyor|li)|\w+m[ae]l[ıi](?:s[ıi]n|y[ıi]z|d[ıi]r)?|sadece|yaln[ıi]zca|[öo]nce bana sor)\b",
        r"\b(?:en fazla|en [çc]ok|azami|en az|a[şs]ma(?:s[ıi]n|y[ıi]n)|limit|s[ıi]n[ıi]r\w*|b[üu]t[çc]e\w*|fazla(?:s[ıi])? (?:olmas[ıi]n|ge[çc]mesin)|i[çc]inde kals[ıi]n|kadar|ge[çc]mesin|[üu]st[üu]ne [çc][ıi]kma\w*|en ge[çc]|dolmas[ıi]n)\b",
        r"\b(?:karar (?:verdik|verdim|ald[ıi]k)|karar:|kullanaca[ğg][ıi]z|kullan[ıi]yoruz|ile devam)\b",
        r"\b(?:hedef(?:im|imiz)?|ama[çc](?:[ıi]m|[ıi]m[ıi]z)?|hedefi\w*|amac[ıi]\w*|kadar (?:\w+ ){0,8}?(?:istiyoru[mz]|isteri[mz]|hedefliyoru[mz]))\b",
        r"\b(?:tercih eder\w*|tercih ediyor\w*|sevmiyorum|sevmem|vejetaryen\w*|vegan\w*|alerji\w*|yemem|yemiyorum|alerji\w*|bana (?:\w+ ){1,3}?de\b|hitap et\w*|daha [çc]ok sev\w+)\b",
        r"\b(?:(?:benim |bizim )?\w+[ıiuü](?:m|m[ıi]z) (?:art[ıi]k )?[\w\d].{0,40}|(?:toplant[ıi]|randevu|u[çc]u[şs]|tren|s[ıi]nav|adres|numara|telefon|fiyat|kira|b[üu]t[çc]e|teslim|plaka|[şs]ifre|kod|oda|beden|saat)\w* (?:\S+ ){0,5}?(?:ertelendi|al[ıi]nd[ıi]|de[ğg]i[şs]ti|oldu|ta[şs][ıi]nd[ıi]|\S*\d))",
        r"\b(?:s[öo]z veriyorum|taahh[üu]t|\w+(?:aca[ğg][ıi]m|ece[ğg]im|aca[ğg][ıi]z|ece[ğg]iz)|s[öo]z)\b",
        r"\b(?:yerine|art[ıi]k|bundan sonra|asl[ıi]nda|d[üu]zeltme|de[ğg]i[şs]\w*|ta[şs][ıi]nd[ıi]|[şs]imdi|yeni)\b",
    ),
})  # fmt: skip

FOREIGN_KINDS = ("rule", "rule", "limit", "decision", "goal", "preference", "value", "commitment")


@functools.cache
def foreign_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a language: of each of ``FOREIGN_KINDS``, and of a change."""
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in FOREIGN_TEXT[language])


MARKERS_TEXT = MappingProxyType(
    {
        "German": "der die das und ist nicht ein eine einen einem einer ich wir du sie er es mir mich dir uns ihr mit für auf den dem des bitte danke mein meine meinen unser unsere im am zum zur von vom zu nie immer nur kein keine ohne nach bei aus als auch aber oder wenn weil dass noch schon jetzt heute hat haben habe sind war wird werden darf soll kann muss mehr sehr wie was pro maximal höchstens mindestens",
        "French": "suis est sont ai au aux du cette ce cet ces notre nos votre vos mes mon ma ses son sa il elle ils le la les et pas un une je tu nous vous on me te moi toi avec pour sur sous des de d l qu que qui dans en ne y ou où mais très plus au jamais toujours sans merci avant après chez tout fait être avoir deux par",
        "Spanish": "el la los las y es son no un una yo tú nosotros con para por en de del mi mis me te se su sus nos lo le al que nunca siempre sin usa soy eres estoy está muy más pero como si ya hay esto este esta ese esa hoy ayer gracias nada todo todos hasta desde fue ha hemos prefiero ahora cuando dos tres",
        "Portuguese": "o os a as e é são não um uma eu tu você nós com para por pelo em de do da dos das no na nos nas meu minha meus minhas me te se seu sua que ao nunca sempre sem sou estou está foi muito mais mas como já hoje ontem obrigado obrigada isso este esta nada tudo até prefiro agora quando",
        "Italian": "il la lo gli le i e è sono non un una io tu noi con per di del della dei delle da dal mio mia miei mi ti ci si che al alla nel nella in mai sempre senza ho hai ha abbiamo oggi ieri grazie molto più ma come se anche questo questa niente tutto fino adesso quando preferisco",
        "Dutch": "de het een en is zijn niet ik wij we je jij u me mij met voor op van mijn onze ons in te dat die dit nooit altijd geen zonder heb hebt heeft was werd wordt kan mag moet aan bij naar uit om als maar ook nog nu vandaag gisteren bedankt dank erg heel liever dan",
        "Polish": "i w we na nie jest są to z ze do się mój moja moje nasz nasza mi mnie ci że po od za o u nigdy zawsze bez dla ja ty my co jak ale też już tylko dziś wczoraj dziękuję bardzo przez przed czy jestem mam wolę",
        "Turkish": "ve bir bu şu o için ile değil de da ben sen biz bana sana çok ama mi mı mu en asla her hep olmadan var yok gibi daha sonra önce dün bugün teşekkürler ne nasıl kadar sadece hiç benim bizim lütfen",
    }
)
"""The commonest words of the languages with Latin letters: two of them, or one with a letter English lacks, name one."""

MARKERS = MappingProxyType({language: frozenset(words.split()) for language, words in MARKERS_TEXT.items()})
LETTERS = MappingProxyType(
    {
        language: (re.compile(f"[{shared}{own}]"), re.compile(f"[{own}]"))
        for language, shared, own in (
            ("German", "äöü", "ß"),
            ("French", "éèêàçùîôû", "œ"),
            ("Spanish", "áéíóú", "ñ¿¡"),
            ("Portuguese", "çáéêó", "ãõ"),
            ("Polish", "ó", "ąćęłńśźż"),
            ("Turkish", "çöü", "ğış"),
        )
    }
)
"""Letters that English lacks: all of a language, and those that no other of these languages has."""

_NUMBER_WORDS = re.compile(
    r"\d|[一二三四五六七八九十百千万两]"
    r"|\b(?:(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|hundert|tausend)\w*|halbe\w*"
    r"|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|cent|mille"
    r"|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|quince|veinte|treinta|cincuenta|cien|mil|dois|duas|três|quatro|sete|oito|nove|dez|doze|vinte|trinta|cinquenta|cem"
    r"|due|tre|quattro|cinque|sette|otto|dieci|dodici|quindici|venti|trenta|cinquanta|\w*(?:cento|mila)"
    r"|(?:twee|drie|vijf|zes|zeven|negen|tien|twaalf|twintig|dertig|vijftig|honderd|duizend)\w*"
    r"|dw(?:a|ie|óch|om|oma)|trz(?:y|ech|em|ema)|cztery|czterech|pięć|pięciu|sześć|sześciu|dziesięć|dziesięciu|dwanaście|dwadzieścia|sto|tysiąc\w*|tysięcy"
    r"|дв(?:а|е|ух|ум|умя)|тр(?:и|ёх|ех|ём|емя)|четыр\w+|пят(?:ь|и)|шест(?:ь|и)|сем(?:ь|и)|восемь|девять|десят(?:ь|и)|двенадцат(?:ь|и)|двадцат(?:ь|и)|сто|тысяч\w*"
    r"|iki|üç|dört|beş|altı|yedi|sekiz|dokuz|yirmi|otuz|elli|yüz|bin|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|नौ|दस|बारह|बीस|सौ|हज़ार|हजार)(?!\w)"
    r"|(?:اثن|ثلاث|أربع|خمس|سبع|ثمان|تسع|عشر|مئة|مائة|ألف)"
    r"|(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|스무) ?(?:개|명|번|시간|문장|줄|장|분|달|잔|살|가지|페이지)|[일이삼사오육칠팔구]?[십백천만]",
    re.IGNORECASE,
)

SCRIPTS = (
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7a3]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
)
ENGLISH = frozenset(
    "the is are and to of you we my it this that with for from not be have has do don't i'm will i your our a on at by if never always must only please all every use let's us them they he she was were can can't should no any before after without until than in so but as an what when who how one two three more most least me up out new now week day get got go use using it's that's there any no only just not".split()  # noqa: SIM905
)
_BARE_NOW = frozenset(
    "jetzt neu neue neuer neues neuen maintenant nouveau nouvelle ahora nuevo nueva mejor melhor agora novo nova adesso ora nuovo nuova nu nieuw nieuwe maar teraz nowy nowa nowe теперь лучше 现在 以后 今は 新しい 이제 이제는 새로운 الآن الجديد بل अब नया नई şimdi yeni doch eigentlich".split()  # noqa: SIM905
)
_ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|a\.m|p\.m)\.", re.IGNORECASE)
_STRONG = frozenset(
    "prefiero prefiro preferisco soy estoy estou nie niemals immer bitte keine kein jamais toujours nunca siempre jamás sempre nooit altijd nigdy zawsze asla doch".split()  # noqa: SIM905
)
"""Words that name their language alone."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NONE = re.compile(r"(?!)")


def guess_language(text: str) -> str:
    """Name the language of a sentence, ``English`` where nothing else is likely.

    >>> guess_language("Bitte nie am Freitag deployen."), guess_language("Never deploy on Fridays.")
    ('German', 'English')
    """
    for language, script in SCRIPTS:
        if len(script.findall(text[:200])) >= 2:
            return language
    written = _WORD.findall(_ABBREVIATIONS.sub(" ", text[:300]))
    words = [word.lower() for word in written]
    small = " ".join(filter(str.islower, written))
    english = sum(word in ENGLISH for word in words)
    best, most = "English", max(1, english)
    for language, markers in MARKERS.items():
        count = sum((word in markers) * (1 + (word in _STRONG)) for word in words)
        letters, own_letters = LETTERS.get(language, (_NONE, _NONE))
        # A name may have letters of another language: those of its own count twice in words without a capital.
        count += any(map(letters.search, words)) + bool(own_letters.search(small))
        if count > most:
            best, most = language, count
    return best


def holds_number(text: str) -> bool:
    """True for a text with a number, in digits or in words of another language.

    >>> holds_number("höchstens drei Sätze"), holds_number("不超过三句"), holds_number("kurze Sätze")
    (True, True, False)
    """
    return bool(_NUMBER_WORDS.search(text))


def revises(language: str, text: str) -> bool:
    """True where a sentence says that something changed in more than a bare "now" or "new"."""
    *_, revising = foreign_patterns(language)
    return any(match[0].lower() not in _BARE_NOW for match in revising.finditer(text))


def has_english(text: str) -> bool:
    """True for a text with one of the commonest English words."""
    return any(word.lower() in ENGLISH for word in _WORD.findall(text))


IDIOMS = re.compile(
    r"\b(?:(?:please )?(?:don't|do not|dont) (?:you )?(?:worry|stress|sweat|panic|hesitate|mention it|give up|get me wrong|be (?:so |too )?(?:hard|shy|afraid|silly|sad|sorry|a stranger|discouraged|scared)|"
    r"beat yourself|know|think|even|remember|mind|believe|lose (?:hope|heart)|let (?:it|that|them|this|anyone|anything|fear|\w+ \w+) (?:get|stop|bring|discourage|hold|ruin|define)|let the \w+ \w+ you|you (?:think|just|love|agree)|forget to (?:take care|have fun|enjoy|breathe|smile|treat|rest|relax)|rush yourself|ask me why|get me started|tell me|look back|stop believing)"
    r"|never (?:mind|know|knew|say never|give up|stop (?:dreaming|learning|believing|amaz\w+|exploring)|too late|gets? old|ever(?:land)?$|cease\w*|fail\w* to|hurts?|looked back|look back|thought|felt|had|been|really|expected|realized|realised|imagined|seen|heard|tried|liked|got|lose hope|underestimate|forget (?:that|how|the|where|those))"
    r"|never(?:-|\s)ending|never too (?:late|early|old)|always (?:be (?:there|here|grateful|thankful|my|a)|been|wanted|loved|there|a (?:pleasure|joy|good)|nice|fun|good|great|wanted|remember(?:ed)?|room|welcome|believe in|thought|had|felt|dreamed|enjoyed|liked)"
    r"|must(?:-|\s)(?:see|have|try|read|visit|do|watch)s?\b|must (?:say|admit|confess|have been|have \w+ed|be (?:so |really |very |such |quite |pretty |a |an |hard|nice|tough|exciting|great|fun|tired|amazing|wonderful|something|difficult|proud|happy|lovely|awesome|incredible|kidding|joking|\w+ing\b|nervous|excited|thrilled|stressful|rewarding|beautiful))"
    r"|can't (?:wait|believe|imagine|help|complain|thank|get enough|stop|say enough|remember|tell you|seem|recommend|afford to miss|go wrong|beat)|no (?:worries|problem|way|doubt|wonder|idea|matter|one knows|big deal|pressure|rush|offen[cs]e|need to (?:thank|worry|apologi[sz]e)|thanks?|thank you|clue|pun|joke|kidding|luck|end|time to lose|pain,? no gain)"
    r"|only (?:if|when) you (?:want|like|feel)|if only|not only|always (?:at|in|on) my (?:side|mind|heart)|should be (?:fun|good|great|fine|nice|interesting|exciting|able|proud)|let's (?:see|face it|say|be honest|hope|go!|do (?:it|this|that)|catch up|chat|talk|hang|get (?:started|going|into it)|keep (?:in touch|going|it up|at it)|start|continue|begin|move on|dive|have a look|take a look|try|try again|check)\b"
    r"|needless to say|at least (?:it|he|she|they|we|you|i|for now|that)\b|as (?:always|ever|usual)|(?:than|like) (?:never|ever) (?:before)?|once in a lifetime|keep (?:it up|up the|going|me (?:posted|updated|in the loop)|in touch|pushing|shining|smiling|rocking|being|doing|at it|fighting|believing|dreaming|following|moving|on|exploring|spreading)|stay (?:strong|positive|safe|tuned|in touch|true|motivated|awesome|focused))\b",
    re.IGNORECASE,
)  # fmt: skip
"""Phrases of small talk with a binding word in them, which bind nobody."""
