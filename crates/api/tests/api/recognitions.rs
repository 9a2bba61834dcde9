//! `/v1/recognitions` and `/v1/samples`

use std::io::Cursor;

use image::{DynamicImage, GrayImage, ImageFormat, Luma, LumaA};
use knn::{Bits, SIDE};
use serde_json::{Value, json};

use crate::client::{Answer, TestServer};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const TEXT: [(&str, &str); 1] = [("Content-Type", "text/plain; charset=utf-8")];
const PNG: [(&str, &str); 1] = [("Content-Type", "image/png")];
const JPEG: [(&str, &str); 1] = [("Content-Type", "image/jpeg")];

/// Built-in digit whose nearest neighbors have the same label.
fn digit(name: &str) -> (u64, Bits) {
    let digits = knn::digits();
    let mut found = Vec::new();
    let clear = digits.iter().find(|(_, label, bits)| {
        digits.nearest(bits, knn::K::DEFAULT, &mut found);
        digits.name(*label) == name && found.iter().all(|one| one.label == *label)
    });
    let (id, _, bits) = clear.unwrap();
    (id, bits)
}

/// Image of a drawing in black on white, each cell 9 x 9 pixels, with a margin.
fn picture(bits: &Bits) -> GrayImage {
    let (margin, cell) = (40, 9);
    let side = 2 * margin + cell * SIDE as u32;
    GrayImage::from_fn(side, side, |x, y| {
        let cells = [x, y].map(|at| at.checked_sub(margin).map(|at| (at / cell) as usize));
        let inked = matches!(cells, [Some(column), Some(row)]
            if column < SIDE && row < SIDE && bits.bit(row * SIDE + column));
        Luma([if inked { 20 } else { 240 }])
    })
}

fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn numbers(bits: &Bits) -> Vec<u8> {
    (0..knn::BITS).map(|at| u8::from(bits.bit(at))).collect()
}

fn ask(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Value {
    let answer = server.send("POST", path, headers, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn every_form_of_a_drawing_has_the_same_result() {
    let server = TestServer::open();
    let (id, bits) = digit("7");
    let ones: String = numbers(&bits).iter().map(ToString::to_string).collect();
    let lines = bits.to_string().replace('#', "1").replace('.', "0");
    let base64 = {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.encode(bits.to_bytes())
    };
    let hex = format!("{bits:x}");
    let one =
        ask(&server, "/v1/recognitions", &JSON, json!({"sample": hex}).to_string().as_bytes());
    assert_eq!((&one["label"], &one["confidence"]), (&json!("7"), &json!(1.0)));
    assert_eq!(one["votes"], json!([{"label": "7", "vote_count": 15}]));
    let neighbors = one["neighbors"].as_array().unwrap();
    assert_eq!(neighbors.len(), 15);
    assert_eq!(neighbors[0], json!({"id": id.to_string(), "label": "7", "distance": 0}));
    let forms = [json!(ones), json!(lines), json!(hex.to_uppercase()), json!(base64)];
    let forms = [&forms[..], &[json!(numbers(&bits))]].concat();
    for form in &forms {
        let body = json!({"sample": form}).to_string();
        assert_eq!(ask(&server, "/v1/recognitions", &JSON, body.as_bytes()), one, "{body}");
        if let Some(text) = form.as_str() {
            assert_eq!(ask(&server, "/v1/recognitions", &TEXT, text.as_bytes()), one, "{text}");
        }
    }
    let all =
        ask(&server, "/v1/recognitions", &JSON, json!({"samples": forms}).to_string().as_bytes());
    assert_eq!(all, json!({"recognitions": vec![&one; 5]}));
    let text = format!("\r\n{lines}\r\n \t\r\n\n{hex}\n\n{base64}\n");
    let all = ask(&server, "/v1/recognitions", &TEXT, text.as_bytes());
    assert_eq!(all, json!({"recognitions": vec![&one; 3]}));
}

#[test]
fn images_of_every_kind_are_recognized_as_their_drawing() {
    let server = TestServer::open();
    for name in ["0", "3", "7"] {
        let picture = picture(&digit(name).1);
        let png = file(&picture.clone().into(), ImageFormat::Png);
        let bits = api::drawing::open(&png).unwrap().normalize().unwrap();
        let body = json!({"sample": format!("{bits:x}")}).to_string();
        let mut drawn = ask(&server, "/v1/recognitions", &JSON, body.as_bytes());
        assert_eq!(drawn["label"], name);
        // The response for an image also has the bits of the drawing.
        assert_eq!(drawn["sample"], json!(null));
        drawn["sample"] = json!(format!("{bits:x}"));
        let mut inverted = DynamicImage::from(picture.clone());
        inverted.invert();
        // Ink of any shade on a transparent background, as a canvas in a browser saves it.
        let transparent = |shade: u8| {
            let pixels =
                picture.pixels().flat_map(|Luma([grey])| [shade, u8::from(*grey < 99) * 255]);
            let image = image::ImageBuffer::<LumaA<u8>, _>::from_raw(
                picture.width(),
                picture.height(),
                pixels.collect::<Vec<u8>>(),
            );
            DynamicImage::from(image.unwrap())
        };
        let grey = DynamicImage::from(picture.clone());
        for (image, exact) in [
            (grey.clone(), true),
            (grey.clone().into_rgb8().into(), true),
            (grey.into_rgba16().into(), true),
            (inverted, true),
            (transparent(0), true),
            (transparent(255), true),
        ] {
            let png = ask(&server, "/v1/recognitions", &PNG, &file(&image, ImageFormat::Png));
            assert_eq!(png == drawn, exact, "{name} {:?}", image.color());
        }
        let jpeg = file(&picture.into(), ImageFormat::Jpeg);
        let result = ask(&server, "/v1/recognitions", &JPEG, &jpeg);
        assert_eq!(result["label"], name);
        // The format is detected from the bytes, not from the header.
        for kind in ["image/*", "IMAGE/PNG", "image/jpg"] {
            let kind = [("Content-Type", kind)];
            assert_eq!(ask(&server, "/v1/recognitions", &kind, &jpeg), result);
        }
    }
}

#[test]
fn adding_and_deleting_a_sample_change_results_immediately() {
    let server = TestServer::open();
    let bits = format!("{:x}", Bits::from_fn(|at| at % 3 == 0));
    let question = json!({"sample": bits}).to_string();
    let label = |k: u32| {
        let path = format!("/v1/recognitions?k={k}&set=digits");
        ask(&server, &path, &JSON, question.as_bytes())["label"].clone()
    };
    let before = label(1);
    let body = json!({"label": "\"stripes\" \\", "sample": bits});
    let added = server.post("/v1/samples", &body);
    assert_eq!(added.status, 201, "{added:?}");
    let id = added.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/samples/{id}");
    assert_eq!(added.header("location"), Some(path.as_str()));
    let view = json!({"id": id, "set": "digits", "label": "\"stripes\" \\", "sample": bits});
    assert_eq!((added.json(), server.get(&path).json()), (view.clone(), view));
    assert_eq!(label(1), "\"stripes\" \\");
    assert_ne!(label(15), "\"stripes\" \\");
    assert_eq!(server.send("DELETE", &path, &[], b"").status, 204);
    assert_eq!(label(1), before);
    server.send("DELETE", &path, &[], b"").assert_error(404, "sample_not_found", "deleted");
    server.get(&path).assert_error(404, "sample_not_found", "deleted");
}

#[test]
fn a_set_exists_from_its_first_sample_to_its_last() {
    let server = TestServer::open();
    let question = json!({"sample": "0".repeat(256)}).to_string();
    let ask = || server.send("POST", "/v1/recognitions?set=letters", &JSON, question.as_bytes());
    ask().assert_error(404, "set_not_found", "before");
    let line = |label: &str, digit: &str| {
        format!(
            "{{\"op\":\"add_sample\",\"set\":\"letters\",\"label\":\"{label}\",\"sample\":\"{}\"}}\n",
            digit.repeat(256)
        )
    };
    let lines = [line("dark", "f"), line("grey", "5"), line("grey", "3"), line("", "0")].concat();
    let results = server.batch(&lines).lines();
    assert_eq!(results[3]["error"], "bad_label");
    let found = ask().json();
    assert_eq!((&found["label"], &found["confidence"]), (&json!("grey"), &json!(0.6667)));
    let overview = server.get("/v1/recognitions").json();
    assert_eq!((&overview["k"], &overview["k_max"]), (&json!(15), &json!(100)));
    assert!(overview["instruction_set"].is_string());
    let (digits, letters) = (&overview["sets"][0], &overview["sets"][1]);
    assert_eq!(
        (&digits["sample_count"], digits["labels"].as_array().unwrap().len()),
        (&json!(2_339), 10)
    );
    let labels =
        json!([{"label": "dark", "sample_count": 1}, {"label": "grey", "sample_count": 2}]);
    assert_eq!(*letters, json!({"set": "letters", "sample_count": 3, "labels": labels}));
    for result in &results[..3] {
        let line = format!("{{\"op\":\"delete_sample\",\"id\":{}}}", result["id"]);
        assert_eq!(server.batch(&line).lines(), [json!({"ok": true})]);
    }
    ask().assert_error(404, "set_not_found", "after");
}

#[test]
fn a_repeated_key_adds_a_sample_once() {
    let server = TestServer::open();
    let body = json!({"label": "x", "sample": "0".repeat(256), "set": "once"});
    let add = || server.with_json("POST", "/v1/samples", &[("Idempotency-Key", "k")], &body);
    let (first, again) = (add(), add());
    assert_eq!((first.status, first.json()), (again.status, again.json()));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(server.get("/v1/recognitions").json()["sets"][1]["sample_count"], 1);
}

/// Sends every case and expects its error.
fn check(send: impl Fn(&TestServer, &[u8]) -> Answer, cases: &[(&[u8], u16, &str)]) {
    let server = TestServer::open();
    let before = server.get("/v1/recognitions").json();
    for (input, status, code) in cases {
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]).into_owned();
        send(&server, input).assert_error(*status, code, &shown);
    }
    assert_eq!(server.get("/v1/recognitions").json(), before);
}

#[test]
fn invalid_samples_are_refused() {
    let numbers = |count: usize, last: &str| {
        format!("{{\"sample\":[{}{last}]}}", "0,".repeat(count - 1)).into_bytes()
    };
    let list = |count: usize| {
        let samples = vec![json!("0".repeat(256)); count];
        json!({"samples": samples}).to_string().into_bytes()
    };
    let text = |text: String| json!({"sample": text}).to_string().into_bytes();
    check(
        |server, body| server.send("POST", "/v1/recognitions", &JSON, body),
        &[
            (b"", 400, "bad_json"),
            (b"{}", 400, "bad_json"),
            (b"{\"sample\":7}", 400, "bad_json"),
            (b"{\"sample\":null}", 400, "bad_json"),
            (b"{\"sample\":\"\",\"samples\":[]}", 400, "bad_json"),
            (b"{\"samples\":\"0\"}", 400, "bad_json"),
            (b"{\"samples\":[[-1]]}", 400, "bad_json"),
            (&numbers(1_023, "0"), 422, "bad_sample"),
            (&numbers(1_025, "0"), 422, "bad_sample"),
            (&numbers(1_024, "2"), 422, "bad_sample"),
            (&numbers(1_024, "0.5"), 400, "bad_json"),
            (&text(String::new()), 422, "bad_sample"),
            (&text("0".repeat(1_023)), 422, "bad_sample"),
            (&text("0".repeat(1_023) + "2"), 422, "bad_sample"),
            (&text("0".repeat(255) + "g"), 422, "bad_sample"),
            (&text("A".repeat(172)), 422, "bad_sample"),
            (&text("A".repeat(170) + "*="), 422, "bad_sample"),
            (&text("A".repeat(171)), 422, "bad_sample"),
            (&list(0), 422, "bad_sample"),
            (&list(1_001), 422, "bad_sample"),
            (
                &[&b"{\"samples\":["[..], &b"1,".repeat(2_100_000), b"1]}"].concat(),
                413,
                "body_too_large",
            ),
        ],
    );
    check(
        |server, body| server.send("POST", "/v1/recognitions", &TEXT, body),
        &[
            (b"", 422, "bad_sample"),
            (b"\xff", 400, "bad_request"),
            (&b"0".repeat(1_023), 422, "bad_sample"),
            (&[&b"0".repeat(256)[..], b"\n\n", &b"1".repeat(200)].concat(), 422, "bad_sample"),
            (&[&b"0".repeat(256)[..], b"\n\n"].concat().repeat(1_001), 422, "bad_sample"),
        ],
    );
    let server = TestServer::open();
    assert_eq!(
        server.send("POST", "/v1/recognitions", &JSON, &list(1_000)).json()["recognitions"]
            .as_array()
            .unwrap()
            .len(),
        1_000
    );
    let plain = server.send("POST", "/v1/recognitions", &[("Content-Type", "text/html")], b"0");
    plain.assert_error(415, "unsupported_media_type", "html");
    let short = server.send("POST", "/v1/recognitions", &[("Content-Type", "image")], b"0");
    short.assert_error(415, "unsupported_media_type", "image");
    server.send("POST", "/v1/recognitions?k=0", &TEXT, b"0").assert_error(422, "bad_k", "k");
}

#[test]
fn invalid_images_are_refused() {
    let picture = DynamicImage::from(picture(&digit("3").1));
    let (png, jpeg) = (file(&picture, ImageFormat::Png), file(&picture, ImageFormat::Jpeg));
    let blank = file(&GrayImage::new(30, 30).into(), ImageFormat::Png);
    let half = |file: &[u8]| file[..file.len() / 2].to_vec();
    // This file is only a header, which announces a large size.
    let mut huge = png[..png.len().min(60)].to_vec();
    for at in [16, 20] {
        huge[at..at + 4].copy_from_slice(&20_000_u32.to_be_bytes());
    }
    let crc = crc32(&huge[12..29]);
    huge[29..33].copy_from_slice(&crc.to_be_bytes());
    check(
        |server, body| server.send("POST", "/v1/recognitions", &PNG, body),
        &[
            (b"", 422, "bad_image"),
            (b"GIF89a", 422, "bad_image"),
            (&png[..20], 422, "bad_image"),
            (&half(&png), 422, "bad_image"),
            (&half(&jpeg)[..200], 422, "bad_image"),
            (&blank, 422, "bad_image"),
            (&huge, 422, "bad_image"),
        ],
    );
    let server = TestServer::open();
    let message = server.send("POST", "/v1/recognitions", &PNG, &huge).json()["message"].clone();
    assert!(message.as_str().unwrap().contains("not 20000 x 20000"), "{message}");
}

/// The checksum of PNG files.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

#[test]
fn samples_that_cannot_be_added_or_deleted_are_refused() {
    let zeros = "0".repeat(256);
    check(
        |server, body| server.send("POST", "/v1/samples", &JSON, body),
        &[
            (b"{}", 400, "bad_json"),
            (b"{\"label\":\"x\"}", 400, "bad_json"),
            (format!("{{\"label\":7,\"sample\":\"{zeros}\"}}").as_bytes(), 400, "bad_json"),
            (format!("{{\"label\":\"\",\"sample\":\"{zeros}\"}}").as_bytes(), 422, "bad_label"),
            (format!("{{\"label\":\"a\\n\",\"sample\":\"{zeros}\"}}").as_bytes(), 422, "bad_label"),
            (format!("{{\"label\":\"x\",\"sample\":\"{zeros}0\"}}").as_bytes(), 422, "bad_sample"),
            (
                format!("{{\"label\":\"x\",\"sample\":\"{zeros}\",\"set\":\"a/b\"}}").as_bytes(),
                422,
                "bad_set",
            ),
        ],
    );
    check(
        |server, id| {
            let path = format!("/v1/samples/{}", String::from_utf8_lossy(id));
            server.send("DELETE", &path, &[], b"")
        },
        &[
            (b"0", 409, "sample_built_in"),
            (b"2338", 409, "sample_built_in"),
            (b"9223372036854775807", 404, "sample_not_found"),
            (b"9223372036854775808", 400, "bad_request"),
            (b"seven", 400, "bad_request"),
        ],
    );
    let server = TestServer::open();
    assert_eq!(server.get("/v1/samples/2338").json()["set"], "digits");
    server.get("/v1/samples/2339").assert_error(404, "sample_not_found", "none");
}
