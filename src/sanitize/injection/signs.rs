//! Where a search for injected instructions begins. Each attempt has at least one of
//! these; they are short stems, so that a few serve many words.

use crate::sanitize::detect::Cue;

#[rustfmt::skip]
pub(super) const SIGNS: &[Cue] = &[
    // To set aside.
    Cue::Word("ignor"), Cue::Word("disregard"), Cue::Word("forget"), Cue::Word("overrid"), Cue::Word("bypass"), Cue::Word("supersed"), Cue::Word("instruct"), Cue::Word("instruc"), Cue::Word("guideline"),
    Cue::Word("directive"), Cue::Word("prompt"), Cue::Word("guardrail"), Cue::Word("what you were told"), Cue::Word("your rules"), Cue::Word("your training"), Cue::Word("current task"), Cue::Word("original task"), Cue::Word("everything above"),
    Cue::Word("anweisung"), Cue::Word("vorgaben"), Cue::Word("consigne"), Cue::Word("directives"), Cue::Word("istruzion"), Cue::Word("indicacion"), Cue::Word("instrukc"), Cue::Word("polecen"), Cue::Word("instructies"), Cue::Word("opdracht"), Cue::Word("talimat"),
    Cue::Word("komut"), Cue::Word("pokyn"), Cue::Word("perintah"), Cue::Word("instruksi"), Cue::Word("instruktion"), Cue::Word("ohjeet"), Cue::Word("ohjeita"),
    Cue::Exact("инструкц"), Cue::Exact("указани"), Cue::Exact("Игнорир"), Cue::Exact("вказівк"), Cue::Exact("指令"), Cue::Exact("指示"), Cue::Exact("说明"), Cue::Exact("命令"), Cue::Exact("提示词"), Cue::Exact("プロンプト"), Cue::Exact("规则"),
    Cue::Exact("지시"), Cue::Exact("명령"), Cue::Exact("프롬프트"), Cue::Exact("تعليمات"), Cue::Exact("أوامر"), Cue::Exact("निर्देश"), Cue::Exact("आदेश"), Cue::Exact("chỉ dẫn"), Cue::Exact("hướng dẫn"), Cue::Exact("คำสั่ง"), Cue::Exact("הוראות"), Cue::Exact("οδηγίες"), Cue::Exact("دستور"),
    // To speak to a model or in its chat's signs.
    Cue::Exact("<|"), Cue::Exact("[INST"), Cue::Exact("[/INST"), Cue::Exact("<<SYS"), Cue::Word("_of_turn>"), Cue::Word("<system"), Cue::Word("</system"), Cue::Word("[system"), Cue::Word("system:"), Cue::Word("system]"), Cue::Word("<important"), Cue::Word("<admin"), Cue::Word("### "),
    Cue::Word("assistant"), Cue::Word("assistent"), Cue::Word("asistente"), Cue::Word("language model"), Cue::Word("sprachmodell"), Cue::Word("llm"), Cue::Word(" ai "), Cue::Word(" ai:"), Cue::Word(" ai,"), Cue::Word("ai agent"), Cue::Word("ai model"), Cue::Word("chatbot"), Cue::Word("chatgpt"), Cue::Word("copilot"), Cue::Word("agents reading"),
    Cue::Exact("人工智能"), Cue::Exact("助手"), Cue::Exact("アシスタント"), Cue::Exact("AI助"), Cue::Exact("нейросет"), Cue::Exact("ассистент"),
    // To ask for silence.
    Cue::Word("do not tell"), Cue::Word("don't tell"), Cue::Word("not mention"), Cue::Word("n't mention"), Cue::Word("not inform"), Cue::Word("not notify"), Cue::Word("without telling"), Cue::Word("without inform"), Cue::Word("without mention"), Cue::Word("without ask"),
    Cue::Word("never mention"), Cue::Word("secretly"), Cue::Word("silently"), Cue::Word("user must not"), Cue::Word("user know"), Cue::Word("hide this"), Cue::Word("quietly"),
    // To ask for what is private, or for another role.
    Cue::Word("developer mode"), Cue::Word("maintenance mode"), Cue::Word("debug mode"), Cue::Word("you are now"), Cue::Word("from now on"), Cue::Word("new task"), Cue::Word("new goal"), Cue::Word("do anything now"), Cue::Word("conversation"), Cue::Word("chat history"),
    Cue::Word("~/.ssh"), Cue::Word("id_rsa"), Cue::Word("the user's"), Cue::Word("user’s"), Cue::Word("exfiltrat"),
];
